"""A socket that speaks TLS and never blocks, as far as Peer, Reader and Greeting need one."""

import contextlib
import socket
import ssl
from collections.abc import Sequence
from typing import cast

Buffer = bytes | bytearray | memoryview

_CHUNK = 2**18
_MAX_ENCRYPTED = 2**18
"""Bytes that are encrypted before the kernel has taken those before them."""


class Secure:
    """Reads and writes as a socket without a timeout of its own does; the handshake goes on beside it."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._sock, self.family = sock, sock.family
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=server_side)
        self._encrypted = memoryview(b"")
        self._owed = 0

    @property
    def pending(self) -> bool:
        """Whether something has come that a selector does not know of."""
        return self._in.pending > 0 or self._tls.pending() > 0

    @property
    def wants_write(self) -> bool:
        """Whether room to write is of use: not while the handshake waits for the other side's word."""
        return bool(self._encrypted) or self._out.pending > 0 or self._tls.version() is not None

    def recv_into(self, target: memoryview) -> int:
        """As of a socket; less than there is room for means that nothing is pending."""
        filled = 0
        while filled < len(target):
            try:
                got = cast(
                    "int", self._tls.read(len(target) - filled, cast("bytearray", target[filled:]))
                )  # typeshed knows less
            except ssl.SSLWantReadError:
                with contextlib.suppress(BlockingIOError):
                    self._push()
                if filled:
                    break
                data = self._sock.recv(_CHUNK)
                self._in.write(data) if data else self._in.write_eof()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            else:
                if got == 0:
                    break
                filled += got
        return filled

    def recv(self, most: int) -> bytes:
        """As of a socket."""
        buffer = bytearray(most)
        return bytes(buffer[: self.recv_into(memoryview(buffer))])

    def sendmsg(self, buffers: Sequence[Buffer]) -> int:
        """As of a socket, but that what could not be sent whole is to come again as it was: it is encrypted already."""
        self._push()
        if not self._owed:
            self._owed = self._encrypt(buffers)
        self._push()
        owed, self._owed = self._owed, 0
        if not owed:
            raise BlockingIOError  # the handshake is not over
        return owed

    def settimeout(self, seconds: float) -> None:
        self._sock.settimeout(seconds)

    def setsockopt(self, level: int, name: int, value: int) -> None:
        self._sock.setsockopt(level, name, value)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def _encrypt(self, buffers: Sequence[Buffer]) -> int:
        taken = 0
        with contextlib.suppress(ssl.SSLWantReadError):
            for buffer in buffers:
                at = 0
                while at < len(buffer) and taken < _MAX_ENCRYPTED:
                    wrote = self._tls.write(memoryview(buffer)[at:])
                    at, taken = at + wrote, taken + wrote
                if at < len(buffer):
                    break
        return taken

    def _push(self) -> None:
        """Give the kernel what is encrypted; raises BlockingIOError when it does not take it all."""
        while self._encrypted or self._out.pending:
            if not self._encrypted:
                self._encrypted = memoryview(self._out.read())
            self._encrypted = self._encrypted[self._sock.send(self._encrypted) :]


Line = socket.socket | Secure
"""What frames come over."""
