"""The accepting side of a data port: tells new connections that send frames from those of the legacy protocol."""

import contextlib
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Protocol

from frameworks.harmonicio.engine.errors import ProtocolError, RefusedError
from frameworks.harmonicio.engine.wire.handshake import Handshake
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket, TlsSocket


class Server(Protocol):
    """Callbacks of the server that owns an acceptor."""

    def watch(self, sock: StreamSocket, on_readable: Callable[[], None]) -> None:
        """Call `on_readable` whenever the socket can be read."""

    def unwatch(self, sock: StreamSocket) -> None:
        """Stop watching the socket."""

    def accept_connection(self, sock: StreamSocket, data: bytes) -> None:
        """Take over the socket of a peer that sends frames; `data` is what was already received."""

    def accept_raw_message(self, message: bytes) -> None:
        """Take a whole message of the legacy protocol. May raise ProtocolError or RefusedError."""

    def record_error(self, error: Exception) -> None:
        """Record why a connection was closed."""


class Acceptor:
    """Accepts connections of a non-blocking listening socket and classifies them by their first bytes."""

    def __init__(self, listener: socket.socket, server: Server, max_bytes: int, tls: ssl.SSLContext | None) -> None:
        self._listener, self._server, self._max_bytes, self._tls = listener, server, max_bytes, tls
        self._handshakes: set[Handshake] = set()

    def accept(self, limit: int) -> None:
        """Accept pending connections while fewer than `limit` are in their handshake; close the rest."""
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                if len(self._handshakes) >= limit:
                    sock.close()
                    continue
                sock.settimeout(0)
                stream = sock if self._tls is None else TlsSocket(sock, self._tls, server_side=True)
                handshake = Handshake(stream, self._max_bytes)
                self._handshakes.add(handshake)
                self._server.watch(stream, partial(self._continue, handshake))

    def drop_overdue(self, now: float) -> None:
        """Close the connections whose handshake has timed out."""
        for handshake in [one for one in self._handshakes if one.overdue(now)]:
            self._forget(handshake, close=True)

    def close(self) -> None:
        """Close all connections whose handshake has not ended."""
        for handshake in list(self._handshakes):
            self._forget(handshake, close=True)

    def _continue(self, handshake: Handshake) -> None:
        try:
            outcome = handshake.receive()
            handshake.check_memory(self._handshakes)
            if outcome == "unclear":
                return
            if outcome == "raw":
                self._server.accept_raw_message(bytes(handshake.data))
                self._forget(handshake, close=True)
            else:
                self._forget(handshake, close=False)
                self._server.accept_connection(handshake.sock, bytes(handshake.data))
        except (EOFError, OSError, ProtocolError, RefusedError) as error:
            self._server.record_error(error)
            self._forget(handshake, close=True)

    def _forget(self, handshake: Handshake, *, close: bool) -> None:
        if handshake in self._handshakes:
            self._handshakes.discard(handshake)
            self._server.unwatch(handshake.sock)
            if close:
                handshake.sock.close()
