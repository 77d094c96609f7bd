"""A connector for a master of 0.2, 0.3 or the IRM era: one request and one connection for each message.

Unlike the original it encodes its query, requests another address after a failure, limits its attempts, and evaluates
nothing. The legacy protocol has no acknowledgements: a message counts as sent when the kernel has taken it.
"""

import hashlib
import http.client
import platform
import socket
import time
from types import TracebackType
from urllib.parse import urlencode

from frameworks.harmonicio.engine.errors import ProtocolError, RefusedError, UnreachableError
from frameworks.harmonicio.engine.wire.frame import Buffer
from frameworks.harmonicio.engine.wire.literal import read_literal

_PE, _QUEUE = 2, 4
_TIMEOUT_S = 30.0
_FIRST_RETRY_S = 0.05
_MAX_NAME_BYTES = 999


class LegacyMasterConnector:
    """Feeds an image through a legacy master.

    Args:
        c_name: name of the image, 1 to 999 bytes.
        host: host of the master.
        port: port of its control plane.
        source: name of this source, which the master displays.
        attempts: attempts for each message; the time between them doubles.
    """

    def __init__(self, c_name: str, host: str, port: int, *, source: str = "harmonicio", attempts: int = 5) -> None:
        if not 0 < len(c_name.encode()) <= _MAX_NAME_BYTES:
            raise RefusedError(f"the legacy protocol carries names of 1 to {_MAX_NAME_BYTES} bytes")
        self._c_name, self._host, self._port, self._source, self._attempts = c_name, host, port, source, attempts
        self.sent = self.queued = 0

    def __enter__(self) -> "LegacyMasterConnector":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, message: Buffer) -> None:
        """Send one message; raises RefusedError when the master refuses, UnreachableError after the last attempt."""
        if not len(message):
            raise RefusedError("the legacy protocol cannot carry an empty message")
        for attempt in range(1, self._attempts + 1):
            try:
                self._send(bytes(message))
            except (OSError, http.client.HTTPException) as error:
                if attempt == self._attempts:
                    where = f"{self._host}:{self._port}"
                    raise UnreachableError(
                        f"the legacy master at {where}, or the address that it named, does not answer: {error}"
                    ) from None
                time.sleep(_FIRST_RETRY_S * 2**attempt)
            else:
                self.sent += 1
                return

    def flush(self) -> None:
        """Do nothing: the legacy protocol has no acknowledgements."""

    def close(self) -> None:
        """Do nothing: every message had its own connections."""

    def _send(self, message: bytes) -> None:
        endpoint = self._request_endpoint(message)
        role = endpoint["node_role"]
        if role not in (_PE, _QUEUE):
            raise ProtocolError(f"a legacy master named an address of role {role!r}")
        name = self._c_name.encode()
        head = b"%03d%s" % (len(name), name) if role == _QUEUE else b""
        address = str(endpoint["node_addr"]), int(str(endpoint["node_port"]))
        with socket.create_connection(address, timeout=_TIMEOUT_S) as sock:
            sock.sendall(head + message)
        self.queued += role == _QUEUE

    def _request_endpoint(self, message: bytes) -> dict[str, object]:
        digest = hashlib.md5(message, usedforsecurity=False).hexdigest()
        query = urlencode(
            {"token": "None", "c_name": self._c_name, "c_os": platform.system(), "source": self._source,
             "digest": digest}
        )  # fmt: skip
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", f"/streamRequest?{query}")
            answer = connection.getresponse()
            text = answer.read(2**20)
        finally:
            connection.close()
        if answer.status != 200:
            raise RefusedError(f"the legacy master said {answer.status}: {text[:200].decode(errors='replace')}")
        endpoint = read_literal(text)
        if not isinstance(endpoint, dict) or not {"node_addr", "node_port", "node_role"} <= set(endpoint):
            raise ProtocolError("the answer of a legacy master names no address")
        return endpoint
