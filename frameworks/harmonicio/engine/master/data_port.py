"""The master's data port: connectors get their leases, and send what goes to the queue; legacy ones in their framing.

An acknowledgement from here means that the message is in the journal and the journal is on the disk (or, without a
journal, that the message is in memory).
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from secrets import compare_digest, token_hex

from msgspec import Struct

from frameworks.harmonicio.engine.errors import ProtocolError, RefusedError
from frameworks.harmonicio.engine.master.credit_policy import PAUSE_S, CreditPolicy
from frameworks.harmonicio.engine.master.group_commit import GroupCommit
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue import MessageQueue
from frameworks.harmonicio.engine.master.queue_intake import MAX_NAME_BYTES, QueueIntake
from frameworks.harmonicio.engine.master.registry import Registry
from frameworks.harmonicio.engine.observer import ack_transfer, data_transfer, lease_transfer
from frameworks.harmonicio.engine.wire.acceptor import Acceptor
from frameworks.harmonicio.engine.wire.connection import FrameConnection
from frameworks.harmonicio.engine.wire.control_messages import Bye, Hello, Leases, Welcome
from frameworks.harmonicio.engine.wire.frame import Frame, FrameHeader, FrameKind, encode_ack, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool
from frameworks.harmonicio.engine.wire.handshake import TIMEOUT_S
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 4096
_LISTEN_BACKLOG = 512
_MAX_HELLO_BYTES = 2**16
_MAX_UNSENT_BYTES = 8 * 2**20
"""Of leases and acknowledgements for a connector that does not read them."""


class DataPortOptions(Struct, frozen=True, kw_only=True):
    """The token, protocol and limit of a data port, and its callback."""

    token: str
    """token of connectors"""
    legacy_protocol: bool
    max_message_bytes: int
    on_queued: Callable[[str], None]
    """called with the name of a stream of which a message was queued"""


class ConnectorConnection:
    """The connection of one connector; `c_name` is empty until its Hello."""

    def __init__(self, sock: StreamSocket, buffers: BufferPool) -> None:
        self.frames, self.sock = FrameConnection(sock, buffers, _MAX_HELLO_BYTES), sock
        self.opened_at = time.monotonic()
        self.c_name, self.session = "", 0
        self.without_credit = False
        self.leases = 0
        """how often it was sent its leases"""


class DataPort:
    """Listens within the running loop, until `close`.

    Args:
        listener: a bound socket, which the data port closes.
        registry: leases are granted there.
        queue: where messages go.
        journal: committed before an acknowledgement; None for none.
        options: what is accepted.
        tls: context for TLS; plain TCP when None.
    """

    def __init__(  # noqa: PLR0913
        self, listener: socket.socket, registry: Registry, queue: MessageQueue, journal: Journal | None, options:
        DataPortOptions, *, tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip  # everything that it works on; there is one call
        listener.listen(_LISTEN_BACKLOG)
        listener.settimeout(0)
        max_bytes, legacy = options.max_message_bytes, options.legacy_protocol
        self._listener, self._registry, self._queue, self._options = listener, registry, queue, options
        self._intake = QueueIntake(queue, max_message_bytes=max_bytes, legacy_protocol=legacy)
        self._credit = CreditPolicy(max_bytes)
        self._commits = GroupCommit[tuple[ConnectorConnection, FrameHeader]](
            journal, on_commit=self._acknowledge, on_failure=self._drop_uncommitted
        )
        self._instance, self._buffers = token_hex(8), BufferPool()
        self._connections: set[ConnectorConnection] = set()
        self._acceptor = Acceptor(listener, self, max_bytes + MAX_NAME_BYTES if legacy else _MAX_HELLO_BYTES, tls)
        self.rejected = 0
        """connections that were closed because of invalid data"""
        _loop().add_reader(listener.fileno(), self._accept)

    @property
    def connections(self) -> int:
        """Return the number of connected connectors."""
        return len(self._connections)

    @property
    def accepted(self) -> int:
        """Return the number of messages that were put into the queue."""
        return self._intake.accepted

    def send_leases(self, c_name: str | None = None) -> None:
        """Send their leases to the connectors of a stream, or to all."""
        for connection in list(self._connections):
            if connection.c_name and c_name in (None, connection.c_name):
                self._send_leases(connection)

    def maintain(self, now: float) -> None:
        """Close connections whose Hello is overdue; give credit to connectors without any once there is space."""
        self._acceptor.drop_overdue(now)
        for connection in list(self._connections):
            if not connection.c_name and now > connection.opened_at + TIMEOUT_S:
                self._drop(connection, None)
            elif connection.without_credit and (credit := self._compute_credit())[0] > 0:
                self._send_credit(connection, credit)

    def close(self) -> None:
        """Stop listening and close every connection."""
        _loop().remove_reader(self._listener.fileno())
        self._listener.close()
        self._acceptor.close()
        for connection in list(self._connections):
            self._drop(connection, None)

    # connections

    def _accept(self) -> None:
        self._acceptor.accept(MAX_CONNECTIONS - len(self._connections))

    def watch(self, sock: StreamSocket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` whenever the socket can be read."""
        _loop().add_reader(sock.fileno(), on_readable)

    def unwatch(self, sock: StreamSocket) -> None:
        """Stop watching the socket."""
        _loop().remove_reader(sock.fileno())

    def accept_connection(self, sock: StreamSocket, data: bytes) -> None:
        """Take over the socket of a peer that sends frames; `data` is what was already received."""
        connection = ConnectorConnection(sock, self._buffers)
        self._connections.add(connection)
        _loop().add_reader(sock.fileno(), self._serve, connection)
        self._serve(connection, data)

    def accept_raw_message(self, message: bytes) -> None:
        """Queue a message of the legacy protocol; raises ProtocolError or RefusedError."""
        self._options.on_queued(self._intake.add_raw(message))

    def _serve(self, connection: ConnectorConnection, data: bytes | None = None) -> None:
        frames = connection.frames
        try:
            self._receive(connection, frames.read() if data is None else frames.reader.feed(data))
        except RefusedError as error:
            self._reject(connection, error)
        except (EOFError, OSError, ProtocolError) as error:
            self._drop(connection, error)

    def _receive(self, connection: ConnectorConnection, frames: list[Frame]) -> None:
        began, trace = time.monotonic(), self._queue.trace
        for frame in frames:
            match frame.header.kind:
                case FrameKind.DATA if connection.c_name:
                    self._intake.add_frame(connection.c_name, frame)
                    self._commits.add((connection, frame.header))
                    if trace.on:
                        trace.received(data_transfer(frame.header, "to the queue"), began)
                case FrameKind.RENEW if connection.c_name:
                    self._registry.lease(connection.c_name, connection.session, time.monotonic())
                    self._send_leases(connection)
                case FrameKind.HELLO if not connection.c_name:
                    self._welcome(connection, frame.decode_body(Hello))
                case kind:
                    raise ProtocolError(f"a {kind.name} frame does not belong here")
            self._buffers.give_back(frame)
        if any(frame.header.kind is FrameKind.DATA for frame in frames):
            trace.worked("source-read", began)

    def _welcome(self, connection: ConnectorConnection, hello: Hello) -> None:
        options = self._options
        if not compare_digest(hello.token.encode(), options.token.encode()):
            connection.frames.send([encode_control(FrameKind.BYE, Bye("refused: wrong token"))])
            raise ProtocolError("a Hello was refused: wrong token")
        connection.c_name, connection.session = hello.c_name, hello.session
        connection.frames.reader.max_body_bytes = options.max_message_bytes
        self._registry.lease(hello.c_name, hello.session, time.monotonic())
        credit = self._announce(connection, self._compute_credit())
        welcome = Welcome(self._instance, *credit, max_body_bytes=options.max_message_bytes)
        self._send(connection, encode_control(FrameKind.WELCOME, welcome))
        self._send_leases(connection)

    def _send_leases(self, connection: ConnectorConnection) -> None:
        addresses, connection.leases = self._registry.addresses(connection.c_name), connection.leases + 1
        leases = Leases(self._registry.lease_seconds, addresses, connection.leases)
        self._queue.trace.sent(lease_transfer(connection.session, connection.leases))
        self._send(connection, encode_control(FrameKind.LEASES, leases))

    def _send(self, connection: ConnectorConnection, data: bytes) -> None:
        try:
            connection.frames.send([data])
            if connection.frames.unsent > _MAX_UNSENT_BYTES:
                self._drop(connection, ProtocolError(f"{connection.frames.unsent} bytes wait: it does not read"))
            elif connection.frames.unsent:
                _loop().add_writer(connection.sock.fileno(), self._flush, connection)
        except OSError as error:
            self._drop(connection, error)

    def _flush(self, connection: ConnectorConnection) -> None:
        try:
            if connection.frames.flush():
                _loop().remove_writer(connection.sock.fileno())
        except OSError as error:
            self._drop(connection, error)

    # acknowledgements and credit

    def _acknowledge(self, items: list[tuple[ConnectorConnection, FrameHeader]], began: float) -> None:
        """Acknowledge frames that are on the disk, and whose commit began at that monotonic time."""
        credit, trace = self._compute_credit(), self._queue.trace
        trace.worked("wal-commit", began)
        for connection, header in items:
            if connection in self._connections:
                connection.without_credit = credit[0] == 0
                data = encode_ack(header.session, header.first, header.count, failed=0, credit=credit)
                if trace.on:
                    trace.sent(ack_transfer(header.session, header.first, header.count, "to the queue"))
                self._send(connection, data)
        if self._credit.lower(credit):
            for connection in list(self._connections):
                if connection.c_name:
                    self._send_credit(connection, credit)
        for c_name in {connection.c_name for connection, _ in items}:
            self._options.on_queued(c_name)

    def _drop_uncommitted(self, items: list[tuple[ConnectorConnection, FrameHeader]], error: OSError) -> None:
        for connection, _ in items:
            self._drop(connection, error)

    def _compute_credit(self) -> tuple[int, int]:
        return self._credit.compute(self._queue.free_space(), len(self._connections), time.monotonic())

    def _announce(self, connection: ConnectorConnection, credit: tuple[int, int]) -> tuple[int, int]:
        """Record that a connector is sent a credit, and return the credit."""
        connection.without_credit = credit[0] == 0
        self._credit.announce(credit)
        return credit

    def _send_credit(self, connection: ConnectorConnection, credit: tuple[int, int]) -> None:
        self._send(connection, encode_ack(0, 0, 0, failed=0, credit=self._announce(connection, credit)))

    # closing

    def _reject(self, connection: ConnectorConnection, error: RefusedError) -> None:
        """Read nothing more from a connector whose frame the journal did not take, and close it a little later."""
        self.record_error(error)
        self._credit.pause(time.monotonic())
        _loop().remove_reader(connection.sock.fileno())
        _loop().call_later(PAUSE_S, self._drop, connection, None)

    def _drop(self, connection: ConnectorConnection, error: Exception | None) -> None:
        if connection in self._connections:
            if error is not None:
                self.record_error(error)
            self._connections.discard(connection)
            _loop().remove_reader(connection.sock.fileno())
            _loop().remove_writer(connection.sock.fileno())
            connection.frames.close()

    def record_error(self, error: Exception) -> None:
        """Count and log a connection that was closed because of invalid or refused data."""
        if isinstance(error, ProtocolError | RefusedError):
            self.rejected += 1
            logger.warning("a connection to the data port was closed: %s", error)


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
