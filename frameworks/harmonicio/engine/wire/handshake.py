"""The first bytes of a connection, which tell a peer that sends frames from one of the legacy protocol."""

import contextlib
import time
from collections.abc import Iterable
from typing import Literal

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, MAGIC, decode_header
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket, TlsSocket

TIMEOUT_S = 30.0
"""Time within which a legacy message must be complete, and the Hello of a peer that sends frames."""
MAX_RAW_BYTES = 256 * 2**20
"""Bytes that all incomplete legacy messages together may take."""
_CHUNK_BYTES = 2**18


class Handshake:
    """Collects the first bytes of a connection until its protocol is known; a legacy message until its end.

    A legacy message that begins with the magic is told apart, too: no valid header checksum follows.
    """

    def __init__(self, sock: StreamSocket, max_bytes: int) -> None:
        sock.settimeout(0)
        self.sock, self._max_bytes = sock, max_bytes
        self.data = bytearray()
        self._began = time.monotonic()
        self._ended = False

    def receive(self) -> Literal["frames", "raw", "unclear"]:
        """Read what has been received and return the protocol.

        Returns:
            "frames", or "raw" once a legacy message is complete; "unclear" until then.

        Raises:
            EOFError: the connection ended without a byte.
            ProtocolError: the message is too long.
            OSError: the connection broke.
        """
        with contextlib.suppress(BlockingIOError):
            while not self._ended and len(self.data) <= self._max_bytes:
                chunk = self.sock.recv(_CHUNK_BYTES)
                self._ended = not chunk
                self.data += chunk
                if self._is_frames() and not (isinstance(self.sock, TlsSocket) and self.sock.pending):
                    break  # pending bytes must be read here: no selector reports them
        if self._is_frames():
            return "frames"
        if len(self.data) > self._max_bytes:
            raise ProtocolError(f"a message of more than {self._max_bytes} bytes")
        if not self._ended:
            return "unclear"
        if not self.data:
            raise EOFError
        return "raw"

    def check_memory(self, handshakes: "Iterable[Handshake]") -> None:
        """Raise ProtocolError when this large message makes the incomplete ones exceed their common limit."""
        if len(self.data) > _CHUNK_BYTES and sum(len(one.data) for one in handshakes) > MAX_RAW_BYTES:
            raise ProtocolError("too many large messages of the legacy protocol at a time")

    def overdue(self, now: float) -> bool:
        """Return whether the handshake has timed out; `now` is monotonic seconds."""
        return now > self._began + TIMEOUT_S

    def _is_frames(self) -> bool:
        if not self.data.startswith(MAGIC) or len(self.data) < HEADER_BYTES:
            return False
        with contextlib.suppress(ProtocolError):
            decode_header(self.data)
            return True
        return False
