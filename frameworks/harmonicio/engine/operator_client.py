"""An operator's client of the master's control plane; blocking, standard library only."""

import http.client
import json
from typing import Any
from urllib.parse import urlencode

from frameworks.harmonicio.engine.errors import Refused, Unreachable
from frameworks.harmonicio.engine.tls import http_connection

_TIMEOUT_S = 30.0


class Operator:
    """Asks a master; raises Unreachable when it does not answer, Refused when it says no."""

    def __init__(self, host: str, port: int, token: str = "", *, tls: str | None = None) -> None:
        self._host, self._port, self._token, self._tls = host, port, token, tls

    def info(self) -> dict[str, Any]:
        """Version and data port."""
        return self._ask("GET", "/v1/info")

    def status(self) -> dict[str, Any]:
        """Everything that the dashboard shows."""
        return self._ask("GET", "/v1/status")

    def submit(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Want PEs: c_name, num, image, cpu_share, memory_bytes, settings."""
        return self._ask("POST", "/v1/streams", wanted)

    def withdraw(self, c_name: str, *, purge: bool = False) -> dict[str, Any]:
        """Drain the PEs of a stream."""
        return self._ask("DELETE", "/v1/streams?" + urlencode({"c_name": c_name, "purge": int(purge)}))

    def stop(self, pe_id: str) -> dict[str, Any]:
        """Drain one PE."""
        return self._ask("DELETE", "/v1/pes?" + urlencode({"id": pe_id}))

    def _ask(self, verb: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = http_connection(self._host, self._port, _TIMEOUT_S, self._tls)
        try:
            connection.request(verb, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as problem:
            raise Unreachable(f"no master answers at {self._host}:{self._port}: {problem}; is it running?") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise Refused(f"the master said {answer.status}: {data.decode(errors='replace')[:500]}")
        found: dict[str, Any] = json.loads(data)
        return found
