"""How messages get in: a connector for blocking code, one for asyncio, and the feeder of both, which never blocks."""

from frameworks.harmonicio.connector.blocking import Connector
from frameworks.harmonicio.connector.coroutine import AsyncConnector
from frameworks.harmonicio.connector.door import connect
from frameworks.harmonicio.connector.feeder import Feeder, Options

__all__ = ["AsyncConnector", "Connector", "Feeder", "Options", "connect"]
