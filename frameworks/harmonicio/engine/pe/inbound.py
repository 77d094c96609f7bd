"""A connection to a PE that sends frames: what it may send, and what it is owed an acknowledgement for."""

import time

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.wire.connection import Peer
from frameworks.harmonicio.engine.wire.control_messages import Hello, Welcome
from frameworks.harmonicio.engine.wire.frame import Frame, Header, Kind, ack, control
from frameworks.harmonicio.engine.wire.frame_reader import Buffers
from frameworks.harmonicio.engine.wire.handshake import TIMEOUT_S
from frameworks.harmonicio.engine.wire.shared_memory import opened
from frameworks.harmonicio.engine.wire.tls_socket import Line

_MAX_HELD = 64
"""Frames whose acknowledgement may wait for those behind them."""
_MAX_HELD_S = 0.002
_LENIENCE = 4
"""So many times its credit, an earlier and larger one, may a guest have sent."""
_MIN_BYTES = 256 * 2**20


class Guest:
    """A peer, from its greeting on."""

    def __init__(self, sock: Line, buffers: Buffers, most_body: int) -> None:
        self.peer, self.sock = Peer(sock, buffers, most_body), sock
        self.welcome = self.is_master = False
        self.memory: memoryview | None = None
        self._began = time.monotonic()
        self._owed: list[list[int]] = []
        self._frames, self._since, self._failed = 0, 0.0, 0
        self._bytes, self._most_bytes = 0, 0

    @property
    def owes(self) -> bool:
        """Whether something is processed and not acknowledged."""
        return bool(self._owed)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames in what was received before it was known to be a guest."""
        return self.peer.reader.feed(data)

    def enter(self, hello: Hello, instance: str, credit: tuple[int, int], most_message: int) -> None:
        """Answer its greeting; from now on it may send messages."""
        self.welcome, self.is_master = True, hello.role == "master"
        self.peer.reader.most_body = most_message
        self._most_bytes = max(_LENIENCE * credit[1], _MIN_BYTES) + most_message
        self.memory = opened(hello.shared) if hello.shared is not None else None
        welcome = Welcome(instance, *credit, shared=self.memory is not None, most_bytes=most_message)
        self.peer.send([control(Kind.WELCOME, welcome)])

    def received(self, frame: Frame) -> None:
        """Count what waits; raises WireError when it is far more than any credit that was given."""
        self._bytes += frame.header.size
        if self._bytes > self._most_bytes:
            raise WireError(f"{self._bytes} bytes are waiting, far beyond the credit")

    def done(self, header: Header, failed: int) -> bool:
        """Note that a frame was processed; whether its acknowledgement may wait a little."""
        self._bytes -= header.size
        self._failed += failed
        now = time.monotonic()
        if not self._owed:
            self._frames, self._since = 0, now
        self._frames += 1
        last = self._owed[-1] if self._owed else None
        if last is not None and last[0] == header.session and last[1] + last[2] == header.first:
            last[2] += header.count
        else:
            self._owed.append([header.session, header.first, header.count])
        return self._frames < _MAX_HELD and now < self._since + _MAX_HELD_S

    def acknowledge(self, credit: tuple[int, int]) -> None:
        """Send what is owed; raises OSError when the connection is gone."""
        failed, self._failed = self._failed, 0
        owed, self._owed = self._owed, []
        acks = [ack(*part, failed=failed if index == 0 else 0, credit=credit) for index, part in enumerate(owed)]
        if not self.peer.closed:
            self.peer.send([b"".join(acks)])

    def overdue(self, now: float) -> bool:
        """Whether it has not greeted in time."""
        return not self.welcome and now > self._began + TIMEOUT_S
