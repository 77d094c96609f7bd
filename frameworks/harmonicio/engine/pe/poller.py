"""A selector that calls a callback per socket and that other threads can wake."""

import contextlib
import selectors
import socket
from collections.abc import Callable

from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

Callback = Callable[[int], None]
"""Called with the events of a socket (selectors.EVENT_READ, EVENT_WRITE)."""


class Poller:
    """Watches sockets. Only `wake` may be called from other threads."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.settimeout(0)
        self._wake_writer.settimeout(0)  # the thread that reads the other end writes here, too
        self.register(self._wake_reader, self._drain_wake)

    def register(self, sock: StreamSocket, callback: Callback) -> None:
        """Call `callback` whenever the socket can be read."""
        self._selector.register(sock, selectors.EVENT_READ, callback)

    def unregister(self, sock: StreamSocket) -> None:
        """Stop watching a socket."""
        self._selector.unregister(sock)

    def watch_writable(self, sock: StreamSocket, *, wanted: bool) -> None:
        """Watch a registered socket for being writable, too, or no longer."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        key = self._selector.get_key(sock)
        if key.events != events:
            self._selector.modify(sock, events, key.data)

    def poll(self, timeout: float, on_wake: Callable[[], None] | None = None) -> None:
        """Call the callbacks of all ready sockets.

        Args:
            timeout: seconds to wait for the first at most.
            on_wake: called after the wait, before any callback.
        """
        ready = self._selector.select(timeout)
        if on_wake is not None:
            on_wake()
        for key, events in ready:
            key.data(events)

    def wake(self) -> None:
        """End a `poll` that waits."""
        with contextlib.suppress(OSError):  # a full buffer wakes as well, and after `close` nobody waits
            self._wake_writer.send(b"!")

    def close(self) -> None:
        """Close the selector; the registered sockets stay open."""
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()

    def _drain_wake(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_reader.recv(4096)
