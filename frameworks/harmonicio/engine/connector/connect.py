"""The connector for whatever master there is: asks it which wire it speaks."""

import http.client
import json
from typing import Any

from frameworks.harmonicio.engine.connector.blocking import Connector
from frameworks.harmonicio.engine.connector.legacy_master import OldMasterConnector
from frameworks.harmonicio.engine.errors import Unreachable
from frameworks.harmonicio.engine.tls import http_connection

_TIMEOUT_S = 10.0


def connect(c_name: str, host: str = "127.0.0.1", port: int = 8080, **options: Any) -> Connector | OldMasterConnector:
    """A connector for the master whose control plane is at host:port; raises Unreachable when nobody answers."""
    connection = http_connection(host, port, _TIMEOUT_S, options.get("tls"))
    try:
        connection.request("GET", "/v1/info")
        answer = connection.getresponse()
        text = answer.read(2**16)
    except (OSError, http.client.HTTPException) as problem:
        raise Unreachable(f"no master answers at {host}:{port}: {problem}") from None
    finally:
        connection.close()
    if answer.status != 200:  # an old master has no such route
        return OldMasterConnector(c_name, host, port)
    return Connector(c_name=c_name, host=host, port=int(json.loads(text)["data_port"]), **options)
