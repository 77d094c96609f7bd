"""A blocking client of the master's control plane for operators; standard library only."""

import http.client
import json
from typing import Any
from urllib.parse import urlencode

from frameworks.harmonicio.engine.errors import ConfigError, RefusedError, UnreachableError
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
        return self._request("DELETE", "/v1/streams", query={"c_name": c_name, "purge": str(int(purge))})

    def stop(self, pe_id: str) -> dict[str, Any]:
        """Drain one PE."""
        return self._request("DELETE", "/v1/pes", query={"id": pe_id})

    def _request(
        self, verb: str, path: str, body: object = None, *, query: dict[str, str] | None = None
    ) -> dict[str, Any]:
        where = f"{self._host}:{self._port}"
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = http_connection(self._host, self._port, _TIMEOUT_S, self._tls)
        try:
            path = f"{path}?{urlencode(query)}" if query is not None else path
            connection.request(verb, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no master answers at {where}: {error}; is it running?") from None
        except ValueError:  # its text may have the token
            text = f"no request to {where} can be made: its host, the token or a name has characters that do not fit"
            raise ConfigError(text) from None
        finally:
            connection.close()
        if answer.status != 200:
            raise RefusedError(f"the master said {answer.status}: {data.decode(errors='replace')[:500]}")
        return _decode(data, where)


def _decode(data: bytes, where: str) -> dict[str, Any]:
    """Return an answer; raises UnreachableError when it is none of a master."""
    try:
        decoded = json.loads(data)
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise UnreachableError(f"what answers at {where} is no master, whose answers are JSON: {data[:60]!r}")
    return decoded
