"""How messages get in: a connector for blocking code, one for asyncio, and the core of both, which never blocks."""

from frameworks.harmonicio.connector.blocking import Connector
from frameworks.harmonicio.connector.core import Core, Options
from frameworks.harmonicio.connector.coroutine import AsyncConnector
from frameworks.harmonicio.connector.door import connect

__all__ = ["AsyncConnector", "Connector", "Core", "Options", "connect"]
