"""A connector's way to an old PE: one connection for each message, which ends where the message ends.

The old wire acknowledges nothing: a message counts as acknowledged when the kernel has taken all of it and the old PE has closed
its end without an error, which is all that can be seen.
"""

import socket
import time
from collections.abc import Callable

from frameworks.harmonicio.connector.link import Settled
from frameworks.harmonicio.wire.frame import HEADER_BYTES, Sealed
from frameworks.harmonicio.wire.peer import Peer
from frameworks.harmonicio.wire.reader import Buffers
from frameworks.harmonicio.wire.words import Hello, Leases, Place

DEADLINE = 30.0
"""Seconds in which an old PE takes a message; its listen backlog is one, and it is busy with the message before."""


class RawLink:
    """Sends one message at a time to a place that was leased for it."""

    def __init__(self, place: Place, hello: Hello, buffers: Buffers) -> None:
        del hello  # the old wire has no greeting
        self.place, self._buffers = place, buffers
        self.unacked: dict[tuple[int, int], Sealed] = {}
        self.messages = self.bytes = 0
        self.instance, self.draining, self.refused = "raw", False, ""
        self._peer: Peer | None = None
        self._finished, self._began, self._used = False, 0.0, False
        self.lost_for = 0.0

    @property
    def ready(self) -> bool:
        """Whether it can be given its one message: an old PE is leased for a message, not for a time."""
        return not self._used

    @property
    def sock(self) -> object | None:
        """To be watched by a selector."""
        return None if self._peer is None else self._peer.sock

    @property
    def unsent(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return 0 if self._peer is None else self._peer.unsent

    def room(self, message_bytes: int) -> int:
        """One message, whatever its length."""
        return int(message_bytes > 0 and self.ready)

    def send(self, frame: Sealed) -> None:
        """Begin to send the only message of a frame."""
        self._used, self._began, self._finished = True, time.monotonic(), False
        self.unacked, self.messages, self.bytes = {(frame.session, frame.first): frame}, 1, frame.size
        try:
            self._peer = Peer.dial(self.place.host, self.place.port, self._buffers, HEADER_BYTES)
            self._peer.send(frame.buffers[1:])
        except OSError:
            self._fail()

    def step(self, now: float, settled: Settled, leased: Callable[[Leases], None]) -> None:
        """Send on; once all is sent, end the connection and wait for the other end to do the same."""
        del leased
        if self._peer is None:
            return
        try:
            if self._peer.flush() and not self._finished:
                self._finished = True
                self._peer.sock.shutdown(socket.SHUT_WR)
            if self._finished and self._peer.sock.recv(1) == b"":
                self.close()
                self.draining = True
                settled(self.take_back(), 0)
                return
        except BlockingIOError:
            pass
        except OSError:
            self._fail()
        if now > self._began + DEADLINE:
            self._fail()

    def take_back(self) -> list[Sealed]:
        """The message that was not taken."""
        frames, self.unacked = list(self.unacked.values()), {}
        self.messages = self.bytes = 0
        return frames

    def close(self) -> None:
        """Idempotent."""
        peer, self._peer = self._peer, None
        if peer is not None:
            peer.close()

    def _fail(self) -> None:
        self.close()
        self.lost_for = float("inf")
