"""A non-blocking data connection that reads frames and writes buffers."""

import contextlib
import errno
import socket
import ssl
from collections import deque
from collections.abc import Iterable

from frameworks.harmonicio.engine.wire.frame import Buffer, Frame
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool, FrameReader
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket, TlsSocket

_MAX_VECTORS = 64
_KEEPALIVE_IDLE_S, _KEEPALIVE_INTERVAL_S = 10, 5
"""Silence after which the kernel probes a connection, and the time between two probes."""
_USER_TIMEOUT_MS = 60_000
"""Time after which the kernel closes a connection whose peer acknowledges nothing, or takes nothing (a host without
power).

It cannot be shorter: a PE that is busy with one long message takes nothing meanwhile, either.
"""


class FrameConnection:
    """A connected socket, its frame reader, and the buffers that the kernel has not taken yet."""

    def __init__(self, sock: StreamSocket, buffers: BufferPool, max_body_bytes: int) -> None:
        sock.settimeout(0)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _enable_loss_detection(sock)
        self.sock, self.reader = sock, FrameReader(buffers, max_body_bytes)
        self._out: deque[memoryview] = deque()
        self.unsent = 0
        """bytes that the kernel has not taken yet"""
        self.closed = False

    @property
    def wants_write(self) -> bool:
        """Return whether the socket should be watched for being writable."""
        return self.unsent > 0 and (not isinstance(self.sock, TlsSocket) or self.sock.wants_write)

    @classmethod
    def dial(
        cls, host: str, port: int, buffers: BufferPool, max_body_bytes: int, tls: ssl.SSLContext | None = None
    ) -> "FrameConnection":
        """Begin to connect to a host; return the connection, which is not established yet.

        Args:
            host: IP address or host name.
            port: TCP port.
            buffers: pool that the bodies of received frames come from.
            max_body_bytes: longest body that is accepted.
            tls: context for TLS; plain TCP when None.

        Raises:
            OSError: the connection cannot be begun.
        """
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as undo:
            sock = undo.enter_context(socket.socket(family, kind, proto))
            sock.settimeout(0)
            code = sock.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, f"cannot connect to {host}:{port}")
            stream = sock if tls is None else TlsSocket(sock, tls, server_side=False)
            connection = cls(stream, buffers, max_body_bytes)
            undo.pop_all()
        return connection

    def send(self, buffers: Iterable[Buffer]) -> None:
        """Send buffers in order, or keep them for `flush`; raises OSError when the connection is lost."""
        for buffer in buffers:
            view = memoryview(buffer)
            if view:
                self._out.append(view)
                self.unsent += len(view)
        self.flush()

    def flush(self) -> bool:
        """Send the kept buffers as far as the kernel takes them; return whether none is left.

        Raises OSError when the connection is lost.
        """
        out = self._out
        while out:
            try:
                sent = self.sock.sendmsg([out[index] for index in range(min(len(out), _MAX_VECTORS))])
            except BlockingIOError:
                return False
            self.unsent -= sent
            while sent:
                if sent >= len(out[0]):
                    sent -= len(out.popleft())
                else:
                    out[0] = out[0][sent:]
                    sent = 0
        return True

    def read(self) -> list[Frame]:
        """Return the frames received so far; raises EOFError, OSError or ProtocolError when no more will come."""
        return self.reader.read(self.sock)

    def close(self) -> None:
        """Close the socket and discard the kept buffers; idempotent."""
        self.closed = True
        self._out.clear()
        self.sock.close()


def _enable_loss_detection(sock: StreamSocket) -> None:
    """Make the kernel close a connection whose peer has disappeared without closing it."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT_MS)
