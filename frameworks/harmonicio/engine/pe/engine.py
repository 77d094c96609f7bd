"""The engine of a PE: one thread that receives, runs the function, and acknowledges; everything it holds is bounded by credit.

A message is acknowledged when the function has returned. A frame that comes again (its acknowledgement was lost with a
connection) is acknowledged without being run: by session and number, in ranges that do not grow with what has passed.
"""

import contextlib
import logging
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from secrets import compare_digest, token_hex

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.pe.batch_merging import joined, portion
from frameworks.harmonicio.engine.pe.credit import Window
from frameworks.harmonicio.engine.pe.function import Function
from frameworks.harmonicio.engine.pe.history import History
from frameworks.harmonicio.engine.pe.inbound import Guest
from frameworks.harmonicio.engine.wire.acceptor import Doorstep
from frameworks.harmonicio.engine.wire.control_messages import Bye, Hello
from frameworks.harmonicio.engine.wire.frame import SHARED, Batch, Frame, Kind, control
from frameworks.harmonicio.engine.wire.frame_reader import Buffers
from frameworks.harmonicio.engine.wire.tls_socket import Line

logger = logging.getLogger(__name__)

MAX_GUESTS = 1024
_LISTEN_BACKLOG = 512
_HELLO_BYTES = 2**16
_SLOW = 0.0005
"""Seconds that a frame takes from which on its acknowledgement does not wait for others."""
_ROUNDS = 16
"""So often is one guest read from before the others have their turn."""
_LOOK_EVERY = 0.5
"""Seconds between two looks at what is overdue."""


class Engine:
    """Serves one listening socket until `stop`."""

    def __init__(
        self, listener: socket.socket, function: Function, *, c_name: str, token: str, compat: bool, most_message: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        listener.listen(_LISTEN_BACKLOG)
        listener.settimeout(0)
        self.instance, self.function, self.window = token_hex(8), function, Window()
        self._listener, self._c_name, self._token = listener, c_name, token
        self._compat, self._most_message = compat, most_message
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._wake, self._waker = socket.socketpair()
        self._wake.settimeout(0)
        self._waker.settimeout(0)  # the thread that reads the other end writes here, too
        self._selector.register(self._wake, selectors.EVENT_READ, self._woken)
        self._guests: set[Guest] = set()
        self._doorstep = Doorstep(listener, self, most_message if compat else _HELLO_BYTES, tls)
        self._inbox: deque[tuple[Guest, Frame]] = deque()
        self._raw: deque[tuple[bytes, Callable[[], None] | None]] = deque()
        self._history = History()
        self._buffers = Buffers()
        self._draining = self._stopped = False
        self.last_work = time.monotonic()
        self.duplicates = self.refused = 0

    @property
    def waiting(self) -> int:
        """Messages that were received and are not processed yet."""
        return sum(frame.header.count for _, frame in list(self._inbox)) + len(self._raw)

    @property
    def guests(self) -> int:
        """Connections that send frames."""
        return len(self._guests)

    def put_raw(self, message: bytes, done: Callable[[], None] | None = None) -> None:
        """Have a message of the old wire processed, where that is spoken; safe from any thread, as `stop` is."""
        if self._compat:
            self._raw.append((message, done))
            with contextlib.suppress(BlockingIOError):  # as full as it is, it wakes
                self._waker.send(b"!")

    def stop(self) -> None:
        """Drain: take nothing new, process and acknowledge what was received, then return from `run`."""
        self._draining = True
        with contextlib.suppress(OSError):
            self._waker.send(b"!")

    def run(self) -> None:
        """Serve until stopped."""
        looked = 0.0
        while not (self._draining and self._farewell()):
            for key, events in self._selector.select(0 if self._inbox else min(_LOOK_EVERY, self.function.idle())):
                key.data(*(() if key.fileobj in (self._listener, self._wake) else (key.fileobj, events)))
            self._work()
            now = time.monotonic()
            if now > looked + _LOOK_EVERY:
                looked = now
                self._drop_overdue(now)
        self.function.close()
        self._close()

    # what comes in

    def _accept(self) -> None:
        self._doorstep.accept(MAX_GUESTS - len(self._guests))

    def watch(self, sock: Line, hear: Callable[[], None]) -> None:
        self._selector.register(sock, selectors.EVENT_READ, lambda *_: hear())

    def unwatch(self, sock: Line) -> None:
        self._selector.unregister(sock)

    def admit(self, sock: Line, data: bytes) -> None:
        guest = Guest(sock, self._buffers, _HELLO_BYTES)
        self._guests.add(guest)
        self._selector.register(sock, selectors.EVENT_READ, lambda _, events, who=guest: self._serve(who, events))
        self._take(guest, data)

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake.recv(4096)

    def _serve(self, guest: Guest, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                guest.peer.flush()
            for _ in range(_ROUNDS if events & selectors.EVENT_READ else 0):
                frames = guest.peer.read()
                self._take(guest, frames)
                if not frames or guest.peer.closed:
                    break
                self._work()  # at once, while it is in the caches
            self._watch(guest)
        except (EOFError, OSError, WireError) as problem:
            self._part(guest, problem)

    def _take(self, guest: Guest, came: list[Frame] | bytes) -> None:
        try:
            for frame in guest.feed(came) if isinstance(came, bytes) else came:
                kind = frame.header.kind
                if kind is Kind.DATA and guest.welcome:
                    guest.received(frame)
                    self._inbox.append((guest, frame))
                elif kind is Kind.HELLO and not guest.welcome:
                    self._welcome(guest, frame)
                elif kind is not Kind.RENEW:
                    raise WireError(f"a {kind.name} frame does not belong here")  # noqa: TRY301  it ends as an error of the connection does
        except (OSError, WireError) as problem:
            self._part(guest, problem)

    def _welcome(self, guest: Guest, frame: Frame) -> None:
        hello = frame.words(Hello)
        assert isinstance(hello, Hello)
        if not compare_digest(hello.token.encode(), self._token.encode()) or hello.c_name != self._c_name:
            reason = "token" if hello.c_name == self._c_name else f"this PE serves {self._c_name}, not"
            guest.peer.send(
                [control(Kind.BYE, Bye(f"refused: {reason} {hello.c_name if reason != 'token' else ''}".strip()))]
            )
            raise WireError("a greeting was refused")
        guest.enter(hello, self.instance, self.window.share(len(self._guests)), self._most_message)

    # what is done with it

    def _work(self) -> None:
        """Process what waits; look at the sockets again after a while, so that credit keeps flowing."""
        until = time.monotonic() + 0.05
        while self._raw:
            self._run_raw(*self._raw.popleft())
        while self._inbox:
            self._process(*portion(self._inbox, self.function.most))
            if time.monotonic() > until:
                break
        if not self._inbox:
            self._acknowledge()

    def _run_raw(self, message: bytes, done: Callable[[], None] | None) -> None:
        self.function.run(Batch(memoryview(message), None, 1))
        self.last_work = time.monotonic()
        if done is not None:
            done()

    def _process(self, guest: Guest, frames: list[Frame]) -> None:
        try:
            batches = [self._batch(guest, frame) for frame in frames]
        except WireError as problem:
            self._part(guest, problem)
            return
        began = time.monotonic()
        parts = joined(
            [part for frame, batch in zip(frames, batches, strict=True) for part in self._new(guest, frame, batch)]
        )
        failed = sum(self.function.run(part) for part in parts)
        del batches, parts
        self.last_work = time.monotonic()
        self.window.took(self.last_work - began, sum(frame.header.count for frame in frames))
        may_wait = True
        for frame in frames:
            may_wait = guest.done(frame.header, failed) and may_wait
            failed = 0
            self._buffers.give(frame)
        if not may_wait or self.last_work > began + _SLOW:
            self._acknowledge(guest)

    def _batch(self, guest: Guest, frame: Frame) -> Batch:
        """The messages of a frame; raises WireError when they are not what they should be."""
        if frame.header.flags & SHARED:
            if guest not in self._guests:
                raise WireError("whoever lent the memory is gone, and may have gone on to use it")
            frame.look_up(guest.memory)
        return frame.batch()

    def _new(self, guest: Guest, frame: Frame, batch: Batch) -> list[Batch]:
        """The parts of a frame that were not processed before; from now on they count as that."""
        header = frame.header
        missing = self._history.missing(header, queued=guest.is_master)
        self._history.add(header, queued=guest.is_master)
        self.duplicates += header.count - sum(end - first for first, end in missing)
        return [batch.part(first - header.first, end - header.first) for first, end in missing]

    def _acknowledge(self, only: Guest | None = None) -> None:
        for guest in list(self._guests) if only is None else [only]:
            if not guest.owes:
                continue
            try:
                guest.acknowledge(self.window.share(len(self._guests)))
                self._watch(guest)
            except OSError as problem:
                self._part(guest, problem)

    # how it ends

    def _watch(self, guest: Guest) -> None:
        """Look for room to write where something is still to be written."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if guest.peer.wants_write else 0)
        if guest in self._guests and self._selector.get_key(guest.sock).events != events:
            self._selector.modify(guest.sock, events, self._selector.get_key(guest.sock).data)

    def _part(self, guest: Guest, problem: Exception) -> None:
        if guest not in self._guests:
            return
        self.note(problem)
        self._guests.discard(guest)
        self._selector.unregister(guest.sock)
        guest.peer.close()

    def note(self, problem: Exception) -> None:
        if isinstance(problem, WireError):
            self.refused += 1
            logger.warning("a connection was closed: %s", problem)

    def _drop_overdue(self, now: float) -> None:
        self._doorstep.drop_overdue(now)
        for guest in [one for one in self._guests if one.overdue(now)]:
            self._part(guest, WireError("no greeting came"))

    def _farewell(self) -> bool:
        """Whether everything received was processed; the first call tells the guests to send no more."""
        if not self._stopped:
            self._stopped = True
            for guest in list(self._guests):
                with contextlib.suppress(OSError):
                    guest.peer.send([control(Kind.BYE, Bye("draining"))])
        return not self._inbox and not self._raw and not any(guest.peer.unsent for guest in self._guests)

    def _close(self) -> None:
        for guest in list(self._guests):
            self._part(guest, EOFError())
        self._doorstep.close()
        self._selector.close()
        for sock in (self._listener, self._wake, self._waker):
            sock.close()
