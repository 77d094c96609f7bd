"""A blocking client of the master's control plane for operators; standard library only."""

import http.client
import json
from typing import Any
from urllib.parse import urlencode

from frameworks.harmonicio.engine.errors import RefusedError, UnreachableError
from frameworks.harmonicio.engine.tls import http_connection

_TIMEOUT_S = 30.0


class OperatorClient:
    """Sends requests to a master.

    Every method raises UnreachableError when the master does not answer, RefusedError when it refuses.

    Args:
        host: host of the master.
        port: port of its control plane.
        token: the operator's token.
        tls: folder of certificates; plain HTTP when None.
    """

    def __init__(self, host: str, port: int, token: str = "", *, tls: str | None = None) -> None:
        self._host, self._port, self._token, self._tls = host, port, token, tls

    def info(self) -> dict[str, Any]:
        """Return the version and the data port."""
        return self._request("GET", "/v1/info")

    def status(self) -> dict[str, Any]:
        """Return everything that the dashboard shows."""
        return self._request("GET", "/v1/status")

    def trace(self) -> dict[str, Any]:
        """Return what the queue did since the last call, as of QueueEvents; the first call begins to record."""
        return self._request("GET", "/v1/trace")

    def submit(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Set the PEs of a stream: c_name, num, image, cpu_share, memory_bytes, settings."""
        return self._request("POST", "/v1/streams", spec)

    def withdraw(self, c_name: str, *, purge: bool = False) -> dict[str, Any]:
        """Drain the PEs of a stream; `purge` deletes its queued messages."""
        return self._request("DELETE", "/v1/streams?" + urlencode({"c_name": c_name, "purge": int(purge)}))

    def stop(self, pe_id: str) -> dict[str, Any]:
        """Drain one PE."""
        return self._request("DELETE", "/v1/pes?" + urlencode({"id": pe_id}))

    def _request(self, verb: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = http_connection(self._host, self._port, _TIMEOUT_S, self._tls)
        try:
            connection.request(verb, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no master answers at {self._host}:{self._port}: {error}; is it running?") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise RefusedError(f"the master said {answer.status}: {data.decode(errors='replace')[:500]}")
        decoded: dict[str, Any] = json.loads(data)
        return decoded
