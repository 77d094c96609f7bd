"""A connector for a master of any version: the master's answer tells its protocol."""

import http.client
import json
from typing import Any

from frameworks.harmonicio.engine.connector.blocking import Connector
from frameworks.harmonicio.engine.connector.legacy_master import LegacyMasterConnector
from frameworks.harmonicio.engine.errors import UnreachableError
from frameworks.harmonicio.engine.tls import http_connection

_TIMEOUT_S = 10.0


def connect(
    c_name: str, host: str = "127.0.0.1", port: int = 8080, **options: Any
) -> Connector | LegacyMasterConnector:
    """Return a connector for the master whose control plane is at host:port.

    Args:
        c_name: name of the stream.
        host: host of the master.
        port: port of its control plane.
        options: of Connector; a legacy master ignores them.

    Raises:
        UnreachableError: no master answers.
    """
    connection = http_connection(host, port, _TIMEOUT_S, options.get("tls"))
    try:
        connection.request("GET", "/v1/info")
        answer = connection.getresponse()
        text = answer.read(2**16)
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"no master answers at {host}:{port}: {error}") from None
    finally:
        connection.close()
    if answer.status != 200:  # a legacy master has no such route
        return LegacyMasterConnector(c_name, host, port)
    return Connector(c_name=c_name, host=host, port=int(json.loads(text)["data_port"]), **options)
