"""A connector of ours with a master of 0.2, 0.3 or the IRM era: one request and one connection for each message, as theirs do.

Unlike theirs it encodes its query, asks for a new place after a failure, counts its attempts right, and evaluates nothing. The old
wire acknowledges nothing: that a message was sent is all that can be said.
"""

import hashlib
import http.client
import platform
import socket
import time
from types import TracebackType
from urllib.parse import urlencode

from frameworks.harmonicio.engine.errors import Refused, Unreachable, WireError
from frameworks.harmonicio.engine.wire.frame import Buffer
from frameworks.harmonicio.engine.wire.literal import read_literal

_PE, _QUEUE = 2, 4
_TIMEOUT_S = 30.0
_PAUSE = 0.05
_MAX_NAME = 999


class OldMasterConnector:
    """Feeds an image at an old master."""

    def __init__(self, c_name: str, host: str, port: int, *, source: str = "harmonicio", attempts: int = 5) -> None:
        if not 0 < len(c_name.encode()) <= _MAX_NAME:
            raise Refused(f"the old wire carries names of 1 to {_MAX_NAME} bytes")
        self._c_name, self._host, self._port, self._source, self._attempts = c_name, host, port, source, attempts
        self.sent = self.queued = 0

    def __enter__(self) -> "OldMasterConnector":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, message: Buffer) -> None:
        """Send one message; raises Refused when the master says no, Unreachable after the last attempt."""
        if not len(message):
            raise Refused("the old wire cannot carry an empty message")
        for attempt in range(1, self._attempts + 1):
            try:
                self._send(bytes(message))
            except (OSError, http.client.HTTPException) as problem:
                if attempt == self._attempts:
                    where = f"{self._host}:{self._port}"
                    raise Unreachable(
                        f"the old master at {where}, or the place it named, does not answer: {problem}"
                    ) from None
                time.sleep(_PAUSE * 2**attempt)
            else:
                self.sent += 1
                return

    def flush(self) -> None:
        """There is nothing to wait for on the old wire."""

    def close(self) -> None:
        """There is nothing to close: every message had its own connections."""

    def _send(self, message: bytes) -> None:
        place = self._endpoint(message)
        role = place["node_role"]
        if role not in (_PE, _QUEUE):
            raise WireError(f"an old master named a place of role {role!r}")
        name = self._c_name.encode()
        head = b"%03d%s" % (len(name), name) if role == _QUEUE else b""
        with socket.create_connection(
            (str(place["node_addr"]), int(str(place["node_port"]))), timeout=_TIMEOUT_S
        ) as sock:
            sock.sendall(head + message)
        self.queued += role == _QUEUE

    def _endpoint(self, message: bytes) -> dict[str, object]:
        digest = hashlib.md5(message, usedforsecurity=False).hexdigest()
        query = urlencode(
            {"token": "None", "c_name": self._c_name, "c_os": platform.system(), "source": self._source, "digest": digest}
        )  # fmt: skip
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", f"/streamRequest?{query}")
            answer = connection.getresponse()
            text = answer.read(2**20)
        finally:
            connection.close()
        if answer.status != 200:
            raise Refused(f"the old master said {answer.status}: {text[:200].decode(errors='replace')}")
        found = read_literal(text)
        if not isinstance(found, dict) or not {"node_addr", "node_port", "node_role"} <= set(found):
            raise WireError("an old master's answer names no place")
        return found
