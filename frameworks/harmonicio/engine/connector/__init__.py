"""Connectors, which feed messages into a stream: for blocking code, for asyncio, and the feeder that both use."""

from frameworks.harmonicio.engine.connector.blocking import Connector
from frameworks.harmonicio.engine.connector.connect import connect
from frameworks.harmonicio.engine.connector.coroutine import AsyncConnector
from frameworks.harmonicio.engine.connector.feeder import Feeder
from frameworks.harmonicio.engine.connector.options import Options

__all__ = ["AsyncConnector", "Connector", "Feeder", "Options", "connect"]
