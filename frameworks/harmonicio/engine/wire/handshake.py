"""The first bytes of a connection tell who calls: a peer that sends frames, or an old one that sends its message as it is."""

import contextlib
import time
from collections.abc import Iterable
from typing import Literal

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, MAGIC, read_header
from frameworks.harmonicio.engine.wire.tls_socket import Line, Secure

TIMEOUT_S = 30.0
"""Seconds within which an old peer's message must be whole, and a new one's greeting."""
_CHUNK = 2**18


MAX_RAW_BYTES = 256 * 2**20
"""Of all old peers' messages under way together."""


class Greeting:
    """Collects what a new connection sends until it is clear what it is; an old peer's message until its end.

    An old message that begins with the magic is still told apart: no checksum of a header follows.
    """

    def __init__(self, sock: Line, most_bytes: int) -> None:
        sock.settimeout(0)
        self.sock, self._most = sock, most_bytes
        self.data = bytearray()
        self.began = time.monotonic()
        self.ended = False

    def hear(self) -> Literal["frames", "raw", "unclear"]:
        """Take what has come: "frames", or "raw" once an old peer's message has ended, "unclear" until then.

        Raises EOFError when nothing came at all, WireError when it is too long, OSError when the connection broke.
        """
        with contextlib.suppress(BlockingIOError):
            while not self.ended and len(self.data) <= self._most:
                chunk = self.sock.recv(_CHUNK)
                self.ended = not chunk
                self.data += chunk
                if self._is_frames() and not (isinstance(self.sock, Secure) and self.sock.pending):
                    break  # what is pending is taken here: no selector would tell of it
        if self._is_frames():
            return "frames"
        if len(self.data) > self._most:
            raise WireError(f"a message of more than {self._most} bytes")
        if not self.ended:
            return "unclear"
        if not self.data:
            raise EOFError
        return "raw"

    def check_room(self, others: "Iterable[Greeting]") -> None:
        """Raise WireError when this large message and the others' are more than is taken at a time."""
        if len(self.data) > _CHUNK and sum(len(one.data) for one in others) > MAX_RAW_BYTES:
            raise WireError("too many large messages of the old wire at a time")

    def overdue(self, now: float) -> bool:
        """Whether it has taken too long."""
        return now > self.began + TIMEOUT_S

    def _is_frames(self) -> bool:
        if not self.data.startswith(MAGIC) or len(self.data) < HEADER_BYTES:
            return False
        with contextlib.suppress(WireError):
            read_header(self.data)
            return True
        return False
