"""One data connection that never blocks: frames in, buffers out; whoever owns it decides when to look at it."""

import contextlib
import errno
import socket
import ssl
from collections import deque
from collections.abc import Iterable

from frameworks.harmonicio.engine.wire.frame import Buffer, Frame
from frameworks.harmonicio.engine.wire.frame_reader import Buffers, Reader
from frameworks.harmonicio.engine.wire.tls_socket import Line, Secure

_VECTORS = 64
_IDLE_SECONDS, _PROBE_SECONDS = 10, 5
"""After which a silent connection is probed, and between two probes."""
_GONE_MS = 60_000
"""After which whoever acknowledges nothing, or takes nothing, counts as gone: a host that lost its power says no good-bye.

No less: a PE that is busy with one long message takes nothing meanwhile, either.
"""


class Peer:
    """A connected socket, its reader, and what is still to be sent."""

    def __init__(self, sock: Line, buffers: Buffers, most_body: int) -> None:
        sock.settimeout(0)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _notice_loss(sock)
        self.sock, self.reader = sock, Reader(buffers, most_body)
        self._out: deque[memoryview] = deque()
        self.unsent = 0
        self.closed = False

    @property
    def wants_write(self) -> bool:
        """Whether something is kept that could be sent once there is room to write."""
        return self.unsent > 0 and (not isinstance(self.sock, Secure) or self.sock.wants_write)

    @classmethod
    def dial(cls, host: str, port: int, buffers: Buffers, most_body: int, tls: ssl.SSLContext | None = None) -> "Peer":
        """Begin to connect to an IP address or a name; raises OSError when that cannot even be begun."""
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as undo:
            sock = undo.enter_context(socket.socket(family, kind, proto))
            sock.settimeout(0)
            code = sock.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, f"cannot connect to {host}:{port}")
            peer = cls(sock if tls is None else Secure(sock, tls, server_side=False), buffers, most_body)
            undo.pop_all()
        return peer

    def send(self, buffers: Iterable[Buffer]) -> None:
        """Send, or keep for `flush`, in order; raises OSError when the connection is gone."""
        for buffer in buffers:
            view = memoryview(buffer)
            if view:
                self._out.append(view)
                self.unsent += len(view)
        self.flush()

    def flush(self) -> bool:
        """Send what is kept, as far as it goes; whether nothing is left. Raises OSError when the connection is gone."""
        out = self._out
        while out:
            try:
                sent = self.sock.sendmsg([out[index] for index in range(min(len(out), _VECTORS))])
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
        """The frames that have come; raises EOFError, OSError or WireError when there will be no more."""
        return self.reader.read(self.sock)

    def close(self) -> None:
        """Idempotent; what is kept is thrown away."""
        self.closed = True
        self._out.clear()
        self.sock.close()


def _notice_loss(sock: Line) -> None:
    """Have the kernel end a connection whose other end is gone without a word."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # of Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _GONE_MS)
