"""How messages get in: a connector for blocking code, one for asyncio, and the feeder of both, which never blocks."""

from frameworks.harmonicio.engine.connector.blocking import Connector
from frameworks.harmonicio.engine.connector.connect import connect
from frameworks.harmonicio.engine.connector.coroutine import AsyncConnector
from frameworks.harmonicio.engine.connector.feeder import Feeder, Options

__all__ = ["AsyncConnector", "Connector", "Feeder", "Options", "connect"]
