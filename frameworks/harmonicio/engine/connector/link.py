"""A connection to one PE, or to the master, that is opened again whenever it breaks."""

import ssl
import time

from frameworks.harmonicio.engine.connector.link_state import LinkState, Settled
from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.connection import FrameConnection
from frameworks.harmonicio.engine.wire.control_messages import Hello, Leases, NodeAddress, Welcome
from frameworks.harmonicio.engine.wire.frame import EncodedFrame, FrameKind, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

_MAX_CONTROL_BYTES = 4 * 2**20
_MAX_UNSENT_BYTES = 2**20
"""Bytes that wait for the kernel, above which nothing is added."""


class Link:
    """Does the I/O of one address; what it knows is in `state`.

    Args:
        address: of the PE or the master.
        hello: first frame of each connection.
        buffers: pool for received bodies.
        tls: context for TLS; plain TCP when None.
    """

    def __init__(
        self, address: NodeAddress, hello: Hello, buffers: BufferPool, tls: ssl.SSLContext | None = None
    ) -> None:
        self.address, self._hello, self._buffers, self._tls = address, hello, buffers, tls
        self.state = LinkState(disconnected_since=time.monotonic())
        self._connection: FrameConnection | None = None

    @property
    def ready(self) -> bool:
        """Return whether it has been welcomed and takes messages once there is credit."""
        return self.state.ready

    @property
    def sock(self) -> StreamSocket | None:
        """Return the socket for a selector; None while there is no connection."""
        return None if self._connection is None else self._connection.sock

    @property
    def wants_write(self) -> bool:
        """Return whether its socket should be watched for being writable."""
        return self._connection is not None and self._connection.wants_write

    def is_lost(self, now: float) -> bool:
        """Return whether its unacknowledged frames should go elsewhere."""
        return self.state.is_lost(now, connected=self._connection is not None)

    def available(self, message_bytes: int) -> int:
        """Return how many messages of that length may be sent now."""
        if self._connection is None or self._connection.unsent > _MAX_UNSENT_BYTES:
            return 0
        return self.state.available(message_bytes)

    def send(self, frame: EncodedFrame) -> None:
        """Send a frame; a connection that breaks is opened again by `step`."""
        self.state.unacked.add(frame)
        try:
            if self._connection is not None:
                self._connection.send(frame.buffers)
        except OSError:
            self._disconnect()

    def step(self, now: float) -> list[Settled | Leases]:
        """Connect, send kept buffers, receive; return the events for the owner of the link."""
        events: list[Settled | Leases] = []
        try:
            if self._connection is None:
                self._connect(now)
            elif self.state.answer_overdue(now):
                raise EOFError  # noqa: TRY301  a missing answer is handled like a lost connection
            if self._connection is not None:
                if self._connection.unsent:
                    self._connection.flush()
                self._receive(self._connection, now, events)
        except (EOFError, OSError, ProtocolError) as error:
            self.state.error = str(error)
            self._disconnect()
        return events

    def renew(self) -> None:
        """Ask the master to renew the leases."""
        try:
            if self._connection is not None and self.state.welcome is not None:
                self._connection.send([encode_control(FrameKind.RENEW)])
        except OSError:
            self._disconnect()

    def close(self) -> None:
        """Close the connection; idempotent."""
        connection, self._connection = self._connection, None
        self.state.welcome = None
        if connection is not None:
            connection.close()

    def _connect(self, now: float) -> None:
        if self.state.retry.begin(now):
            host, port = self.address.host, self.address.port
            self._connection = FrameConnection.dial(host, port, self._buffers, _MAX_CONTROL_BYTES, self._tls)
            self._connection.send([encode_control(FrameKind.HELLO, self._hello)])

    def _receive(self, connection: FrameConnection, now: float, events: list[Settled | Leases]) -> None:
        for frame in connection.read():
            self.state.last_received = now
            event = self.state.receive(frame)
            self._buffers.give_back(frame)
            if isinstance(event, Welcome):
                for unacked in self.state.unacked.frames():
                    connection.send(unacked.buffers)
            elif event is not None:
                events.append(event)

    def _disconnect(self) -> None:
        self.state.disconnect(time.monotonic())
        self.close()
