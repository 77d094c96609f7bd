"""The doorstep of a port: new connections, until it is clear whether frames come or a message of the old wire."""

import contextlib
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Protocol

from frameworks.harmonicio.engine.errors import Refused, WireError
from frameworks.harmonicio.engine.wire.handshake import Greeting
from frameworks.harmonicio.engine.wire.tls_socket import Line, Secure


class House(Protocol):
    """Whose doorstep it is."""

    def watch(self, sock: Line, hear: Callable[[], None]) -> None:
        """Have `hear` called whenever something has come."""

    def unwatch(self, sock: Line) -> None:
        """No more."""

    def admit(self, sock: Line, data: bytes) -> None:
        """Somebody speaks in frames, of which these bytes are the beginning; the socket is the house's from now on."""

    def put_raw(self, message: bytes) -> None:
        """A message of the old wire is whole. May raise WireError or Refused."""

    def note(self, problem: Exception) -> None:
        """A connection was closed because of that."""


class Doorstep:
    """Accepts for a listening socket that does not block; no caller waits here for longer than a greeting may take."""

    def __init__(self, listener: socket.socket, house: House, most_bytes: int, tls: ssl.SSLContext | None) -> None:
        self._listener, self._house, self._most_bytes, self._tls = listener, house, most_bytes, tls
        self._greetings: set[Greeting] = set()

    def accept(self, room: int) -> None:
        """Let in who waits outside, as long as there are fewer than `room` here; hang up on the others."""
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                if len(self._greetings) >= room:
                    sock.close()
                    continue
                sock.settimeout(0)
                line = sock if self._tls is None else Secure(sock, self._tls, server_side=True)
                greeting = Greeting(line, self._most_bytes)
                self._greetings.add(greeting)
                self._house.watch(line, partial(self._hear, greeting))

    def drop_overdue(self, now: float) -> None:
        """Close those that have taken too long."""
        for greeting in [one for one in self._greetings if one.overdue(now)]:
            self._forget(greeting, close=True)

    def close(self) -> None:
        """Close all of them."""
        for greeting in list(self._greetings):
            self._forget(greeting, close=True)

    def _hear(self, greeting: Greeting) -> None:
        try:
            heard = greeting.hear()
            greeting.check_room(self._greetings)
            if heard == "unclear":
                return
            self._forget(greeting, close=heard == "raw")
            if heard == "raw":
                self._house.put_raw(bytes(greeting.data))
            else:
                self._house.admit(greeting.sock, bytes(greeting.data))
        except (EOFError, OSError, WireError, Refused) as problem:
            self._forget(greeting, close=True)
            self._house.note(problem)

    def _forget(self, greeting: Greeting, *, close: bool) -> None:
        if greeting in self._greetings:
            self._greetings.discard(greeting)
            self._house.unwatch(greeting.sock)
            if close:
                greeting.sock.close()
