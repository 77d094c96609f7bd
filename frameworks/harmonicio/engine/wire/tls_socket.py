"""A non-blocking TLS socket with the methods that connections, frame readers and handshakes use."""

import contextlib
import socket
import ssl
from collections.abc import Sequence
from typing import cast

Buffer = bytes | bytearray | memoryview

_CHUNK = 2**18
_MAX_ENCRYPTED_BYTES = 2**18
"""Bytes that are encrypted ahead of what the kernel has taken."""


class TlsSocket:
    """Reads and writes like a non-blocking socket; the TLS handshake proceeds in the same calls."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool) -> None:
        self._sock, self.family = sock, sock.family
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=server_side)
        self._encrypted = memoryview(b"")
        self._encrypted_plain = 0

    @property
    def pending(self) -> bool:
        """Return whether received bytes wait that a selector does not report."""
        return self._in.pending > 0 or self._tls.pending() > 0

    @property
    def wants_write(self) -> bool:
        """Return whether being writable is of use: not while the TLS handshake waits for the peer."""
        return bool(self._encrypted) or self._out.pending > 0 or self._tls.version() is not None

    def recv_into(self, target: memoryview) -> int:
        """Receive into `target` like socket.recv_into; fewer bytes than fit mean that nothing is pending."""
        filled = 0
        while filled < len(target):
            try:
                # typeshed declares neither the memoryview nor the returned count
                count = cast("int", self._tls.read(len(target) - filled, cast("bytearray", target[filled:])))
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
                if count == 0:
                    break
                filled += count
        return filled

    def recv(self, max_bytes: int) -> bytes:
        """Receive like socket.recv."""
        buffer = bytearray(max_bytes)
        return bytes(buffer[: self.recv_into(memoryview(buffer))])

    def sendmsg(self, buffers: Sequence[Buffer]) -> int:
        """Send like socket.sendmsg, except that the same buffers must be passed again after a BlockingIOError.

        They are encrypted already then.
        """
        self._push()
        if not self._encrypted_plain:
            self._encrypted_plain = self._encrypt(buffers)
        self._push()
        plain, self._encrypted_plain = self._encrypted_plain, 0
        if not plain:
            raise BlockingIOError  # the TLS handshake is not complete
        return plain

    def settimeout(self, seconds: float) -> None:
        """Set the timeout of the underlying socket."""
        self._sock.settimeout(seconds)

    def setsockopt(self, level: int, name: int, value: int) -> None:
        """Set an option of the underlying socket."""
        self._sock.setsockopt(level, name, value)

    def fileno(self) -> int:
        """Return the file descriptor of the underlying socket."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the underlying socket."""
        self._sock.close()

    def _encrypt(self, buffers: Sequence[Buffer]) -> int:
        taken = 0
        with contextlib.suppress(ssl.SSLWantReadError):
            for buffer in buffers:
                at = 0
                while at < len(buffer) and taken < _MAX_ENCRYPTED_BYTES:
                    written = self._tls.write(memoryview(buffer)[at:])
                    at, taken = at + written, taken + written
                if at < len(buffer):
                    break
        return taken

    def _push(self) -> None:
        """Send the encrypted bytes; raises BlockingIOError when the kernel does not take all of them."""
        while self._encrypted or self._out.pending:
            if not self._encrypted:
                self._encrypted = memoryview(self._out.read())
            self._encrypted = self._encrypted[self._sock.send(self._encrypted) :]


StreamSocket = socket.socket | TlsSocket
"""A socket that frames are sent over."""
