"""A connection to a PE that sends frames: its limits, and its acknowledgements."""

import time

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.pe.pending_acks import PendingAcks
from frameworks.harmonicio.engine.wire.connection import FrameConnection
from frameworks.harmonicio.engine.wire.control_messages import Hello, Welcome
from frameworks.harmonicio.engine.wire.frame import Frame, FrameHeader, FrameKind, encode_control
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool
from frameworks.harmonicio.engine.wire.handshake import TIMEOUT_S
from frameworks.harmonicio.engine.wire.shared_memory import open_shared_memory
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

_CREDIT_TOLERANCE = 4
"""A peer may have sent this many times its credit, because an earlier credit was larger."""
_MIN_WAITING_BYTES = 256 * 2**20


class InboundConnection:
    """A connection of a connector or of the master, from its first frame on."""

    def __init__(self, sock: StreamSocket, buffers: BufferPool, max_body_bytes: int) -> None:
        self.frames, self.sock = FrameConnection(sock, buffers, max_body_bytes), sock
        self.welcomed = self.is_master = False
        self.memory: memoryview | None = None
        self._opened_at = time.monotonic()
        self._acks = PendingAcks()
        self._waiting_bytes, self._max_waiting_bytes = 0, 0

    @property
    def has_pending_acks(self) -> bool:
        """Return whether anything is processed and not acknowledged."""
        return bool(self._acks)

    @property
    def pending_ranges(self) -> list[tuple[int, int, int]]:
        """Return (session, first, count) of what is processed and not acknowledged."""
        return self._acks.ranges

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames in what was received during the handshake."""
        return self.frames.reader.feed(data)

    def welcome(self, hello: Hello, instance: str, credit: tuple[int, int], max_message_bytes: int) -> None:
        """Answer the Hello; from now on the peer may send messages.

        Args:
            hello: the first frame of the peer.
            instance: id of this PE's process.
            credit: (messages, bytes) that may be unacknowledged.
            max_message_bytes: longest frame body that is accepted.
        """
        self.welcomed, self.is_master = True, hello.role == "master"
        self.frames.reader.max_body_bytes = max_message_bytes
        self._max_waiting_bytes = max(_CREDIT_TOLERANCE * credit[1], _MIN_WAITING_BYTES) + max_message_bytes
        self.memory = open_shared_memory(hello.shared) if hello.shared is not None else None
        welcome = Welcome(instance, *credit, shared=self.memory is not None, max_body_bytes=max_message_bytes)
        self.frames.send([encode_control(FrameKind.WELCOME, welcome)])

    def record_received(self, frame: Frame) -> None:
        """Count a frame that waits; raises ProtocolError when far more waits than any credit allowed."""
        self._waiting_bytes += frame.header.size
        if self._waiting_bytes > self._max_waiting_bytes:
            raise ProtocolError(f"{self._waiting_bytes} bytes are waiting, far beyond the credit")

    def record_processed(self, header: FrameHeader, failed: int) -> bool:
        """Count a frame as processed; return whether its acknowledgement may wait."""
        self._waiting_bytes -= header.size
        return self._acks.add(header, failed, time.monotonic())

    def acknowledge(self, credit: tuple[int, int]) -> None:
        """Send the pending acknowledgements with a new credit; raises OSError when the connection is lost."""
        acks = self._acks.take(credit)
        if not self.frames.closed:
            self.frames.send([acks])

    def overdue(self, now: float) -> bool:
        """Return whether no Hello came in time."""
        return not self.welcomed and now > self._opened_at + TIMEOUT_S
