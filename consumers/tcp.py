"""Reads lines from the TCP connections that the source's senders write to, one each; a message is a line."""

import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack

from bench.config.address import Address
from bench.errors import PluginError
from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint

PIECE_BYTES = 2**20
"""At most so much is taken from the kernel at once."""
TIMEOUT_S = 10.0
"""Seconds in which the source must take the connection."""


class TcpConsumer:
    """A reader of its share of the senders, since each of them writes to one reader; members without a share wait."""

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._connections: deque[_Connection] = deque()
        with ExitStack() as opening:
            opening.callback(self.close)
            for address in endpoint.address.split(",")[member::members]:
                connection = _Connection(address)
                self._connections.append(connection)
                self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            opening.pop_all()  # it stays open

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds.

        Raises:
            PluginError: a connection broke or was closed.
        """
        if not self._connections:
            time.sleep(timeout)
            return ()
        deadline = time.monotonic() + timeout
        while (found := self._take_lines(max_messages)) == [] and (left := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                key.data.receive()
        return found

    def close(self) -> None:
        """Disconnect."""
        while self._connections:
            self._connections.pop().socket.close()
        self._selector.close()

    def _take_lines(self, most: int) -> list[bytes]:
        """Return lines of the connection whose turn it is, among those that have any."""
        for _ in range(len(self._connections)):
            lines = self._connections[0].lines
            self._connections.rotate(-1)
            if lines:
                return [lines.popleft() for _ in range(min(most, len(lines)))]
        return []


class _Connection:
    """A connection to one sender, and its lines that were not taken yet."""

    def __init__(self, address: str) -> None:
        self.socket, self.lines = _connect(address), deque[bytes]()
        self._begun: list[bytes] = []

    def receive(self) -> None:
        """Take from the kernel what it has. Raises PluginError where the connection is over."""
        try:
            piece = self.socket.recv(PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError as problem:
            raise PluginError("tcp", "take", f"the connection broke: {problem.strerror or problem}") from problem
        if not piece:
            raise PluginError("tcp", "take", "the source has closed the connection")
        first, *others = piece.split(b"\n")
        self._begun.append(first)
        for line in others:
            self.lines.append(b"".join(self._begun))
            self._begun = [line]


def _connect(address: str) -> socket.socket:
    try:
        connection = socket.create_connection(Address.parse(address), timeout=TIMEOUT_S)
    except OSError as problem:
        raise PluginError("tcp", "open", f"no connection to {address}: {problem.strerror or problem}") from problem
    connection.settimeout(0)
    return connection


plugin = ConsumerPlugin(open=TcpConsumer)
