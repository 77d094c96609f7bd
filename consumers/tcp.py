"""Reads lines from the one TCP connection that the source writes to; a message is a line."""

import socket
import time
from collections import deque
from collections.abc import Sequence

from bench.config.address import Address
from bench.errors import PluginError
from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint

PIECE_BYTES = 2**20
"""At most so much is taken from the kernel at once."""
TIMEOUT_S = 10.0
"""Seconds in which the source must take the connection."""


class TcpConsumer:
    """A reader; only the first member reads, since the source writes to one reader."""

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:  # noqa: ARG002  how many do not read is of no matter
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []
        self._socket = _connect(endpoint) if member == 0 else None

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds.

        Raises:
            PluginError: the connection broke or was closed.
        """
        if self._socket is None:
            time.sleep(timeout)
            return ()
        if not self._lines:
            self._receive(self._socket, time.monotonic() + timeout)
        return [self._lines.popleft() for _ in range(min(max_messages, len(self._lines)))]

    def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._socket.close()

    def _receive(self, connection: socket.socket, deadline: float) -> None:
        """Read pieces from the kernel until one of them ends a line, or until the deadline."""
        while not self._lines and (left := deadline - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                piece = connection.recv(PIECE_BYTES)
            except TimeoutError:
                return
            except OSError as problem:
                raise PluginError("tcp", "take", f"the connection broke: {problem.strerror or problem}") from problem
            if not piece:
                raise PluginError("tcp", "take", "the source has closed the connection")
            first, *others = piece.split(b"\n")
            self._begun.append(first)
            for line in others:
                self._lines.append(b"".join(self._begun))
                self._begun = [line]


def _connect(endpoint: Endpoint) -> socket.socket:
    host, port = Address.parse(endpoint.address)
    try:
        return socket.create_connection((host, port), timeout=TIMEOUT_S)
    except OSError as problem:
        raise PluginError(
            "tcp", "open", f"no connection to {endpoint.address}: {problem.strerror or problem}"
        ) from problem


plugin = ConsumerPlugin(open=TcpConsumer)
