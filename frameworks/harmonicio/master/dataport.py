"""The master's data port: connectors are told their leases, and bring what goes to the queue; old ones in the old framing.

An acknowledgement from here means: the message is in the journal, and the journal is on the disk (or, without a journal, that the
message is in memory).
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from secrets import compare_digest, token_hex

from frameworks.harmonicio.errors import Refused, WireError
from frameworks.harmonicio.master.backlog import Backlog
from frameworks.harmonicio.master.journal import Journal
from frameworks.harmonicio.master.registry import Registry
from frameworks.harmonicio.wire.frame import Frame, Header, Kind, ack, control, header_bytes
from frameworks.harmonicio.wire.greeting import PATIENCE, Greeting
from frameworks.harmonicio.wire.peer import Peer
from frameworks.harmonicio.wire.reader import Buffers
from frameworks.harmonicio.wire.words import Bye, Hello, Leases, Welcome

logger = logging.getLogger(__name__)

MOST_VISITS = 4096
_HELLO_BYTES = 2**16
_NAME_DIGITS = 3
_SHARE = (65536, 64 * 2**20)
"""Most messages and bytes on their way from one connector."""


class Visit:
    """A connector's connection."""

    def __init__(self, sock: socket.socket, buffers: Buffers) -> None:
        self.peer, self.sock, self.began = Peer(sock, buffers, _HELLO_BYTES), sock, time.monotonic()
        self.c_name, self.session, self.starved = "", 0, False


class DataPort:
    """Listens within a running loop, until `close`."""

    def __init__(
        self, listener: socket.socket, registry: Registry, backlog: Backlog, journal: Journal | None, *, token: str, compat: bool,
        most_message: int, queued: Callable[[str], None],
    ) -> None:  # fmt: skip
        listener.listen(512)
        listener.settimeout(0)
        self._listener, self._registry, self._backlog, self._journal = listener, registry, backlog, journal
        self._token, self._compat, self._most_message, self._queued = token, compat, most_message, queued
        self._instance, self._buffers = token_hex(8), Buffers()
        self._visits: set[Visit] = set()
        self._greetings: set[Greeting] = set()
        self._uncommitted: list[tuple[Visit, Header]] = []
        self._committing: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener.fileno(), self._accept)
        self.refused = self.accepted = 0

    @property
    def connectors(self) -> int:
        """How many are connected."""
        return len(self._visits)

    def tell_leases(self, c_name: str | None = None) -> None:
        """Tell the connectors of a stream (or of all) whom they may send to."""
        for visit in list(self._visits):
            if visit.c_name and c_name in (None, visit.c_name):
                self._send_leases(visit)

    def look(self, now: float) -> None:
        """Close what is overdue; give credit to whoever waits for room in the queue."""
        for greeting in [one for one in self._greetings if one.overdue(now)]:
            self._forget(greeting, close=True)
        for visit in list(self._visits):
            if not visit.c_name and now > visit.began + PATIENCE:
                self._part(visit, None)
            elif visit.starved and self._credit()[0] > 0:
                visit.starved = False
                self._send(visit, ack(0, 0, 0, failed=0, credit=self._credit()))

    def close(self) -> None:
        """Stop listening, close every connection."""
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for greeting in list(self._greetings):
            self._forget(greeting, close=True)
        for visit in list(self._visits):
            self._part(visit, None)

    # connections

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        if len(self._visits) + len(self._greetings) >= MOST_VISITS:
            sock.close()
            return
        greeting = Greeting(sock, self._most_message + 1002 if self._compat else _HELLO_BYTES)
        self._greetings.add(greeting)
        self._loop.add_reader(sock.fileno(), self._greet, greeting)

    def _greet(self, greeting: Greeting) -> None:
        try:
            heard = greeting.hear()
            greeting.check_room(self._greetings)
            if heard == "unclear":
                return
            self._forget(greeting, close=heard == "raw")
            if heard == "raw":
                self._queue_raw(greeting)
                return
        except (EOFError, OSError, WireError, Refused) as problem:
            self._forget(greeting, close=True)
            self._note(problem)
            return
        visit = Visit(greeting.sock, self._buffers)
        self._visits.add(visit)
        self._loop.add_reader(visit.sock.fileno(), self._serve, visit)
        try:
            self._take(visit, visit.peer.reader.feed(bytes(greeting.data)))
        except (OSError, WireError) as problem:
            self._part(visit, problem)

    def _serve(self, visit: Visit) -> None:
        try:
            self._take(visit, visit.peer.read())
        except (EOFError, OSError, WireError) as problem:
            self._part(visit, problem)

    def _take(self, visit: Visit, frames: list[Frame]) -> None:
        for frame in frames:
            match frame.header.kind:
                case Kind.DATA if visit.c_name:
                    self._queue(visit, frame)
                case Kind.RENEW if visit.c_name:
                    self._registry.lease(visit.c_name, visit.session, time.monotonic())
                    self._send_leases(visit)
                case Kind.HELLO if not visit.c_name:
                    self._welcome(visit, frame)
                case kind:
                    raise WireError(f"a {kind.name} frame does not belong here")
            self._buffers.give(frame)

    def _welcome(self, visit: Visit, frame: Frame) -> None:
        hello = frame.words(Hello)
        assert isinstance(hello, Hello)
        if not compare_digest(hello.token.encode(), self._token.encode()):
            visit.peer.send([control(Kind.BYE, Bye("refused: wrong token"))])
            raise WireError("a greeting was refused: wrong token")
        visit.c_name, visit.session = hello.c_name, hello.session
        visit.peer.reader.most_body = self._most_message
        self._registry.lease(hello.c_name, hello.session, time.monotonic())
        self._send(visit, control(Kind.WELCOME, Welcome(self._instance, *self._credit())))
        self._send_leases(visit)

    def _send_leases(self, visit: Visit) -> None:
        leases = Leases(self._registry.lease_seconds, self._registry.places(visit.c_name))
        self._send(visit, control(Kind.LEASES, leases))

    def _send(self, visit: Visit, data: bytes) -> None:
        try:
            visit.peer.send([data])
            if visit.peer.unsent:
                self._loop.add_writer(visit.sock.fileno(), self._flush, visit)
        except OSError as problem:
            self._part(visit, problem)

    def _flush(self, visit: Visit) -> None:
        try:
            if visit.peer.flush():
                self._loop.remove_writer(visit.sock.fileno())
        except OSError as problem:
            self._part(visit, problem)

    # the queue

    def _queue(self, visit: Visit, frame: Frame) -> None:
        """Append a frame to journal and queue; it is acknowledged when the journal is on the disk."""
        header = frame.header
        head = header_bytes(
            Kind.DATA, header.size, header.body_crc, flags=header.flags, count=header.count,
            ids=(header.session, header.first, header.floor),
        )  # fmt: skip
        frame.batch()  # raises WireError when it is not what it should be
        try:
            self._backlog.add(visit.c_name, head, frame.body)
        except Refused as problem:
            raise WireError(f"beyond the credit: {problem}") from None
        self.accepted += header.count
        self._uncommitted.append((visit, header))
        if self._committing is None:
            self._committing = self._loop.create_task(self._commit())

    async def _commit(self) -> None:
        """Acknowledge what is on the disk, all of a moment together."""
        while self._uncommitted:
            now, self._uncommitted = self._uncommitted, []
            if self._journal is not None:
                await self._loop.run_in_executor(None, self._journal.commit)
            credit = self._credit()
            for visit, header in now:
                if visit in self._visits:
                    visit.starved = credit[0] == 0
                    self._send(visit, ack(header.session, header.first, header.count, failed=0, credit=credit))
            for c_name in {visit.c_name for visit, _ in now}:
                self._queued(c_name)
        self._committing = None

    def _credit(self) -> tuple[int, int]:
        """What one connector may have on its way here; nothing once there is not room for a large message."""
        messages, size = self._backlog.room()
        visits = max(1, len(self._visits))
        if size // visits < self._most_message and size // visits < _SHARE[1]:
            return 0, 0
        return min(_SHARE[0], messages // visits), min(_SHARE[1], size // visits)

    def _queue_raw(self, greeting: Greeting) -> None:
        """Queue an old connector's message: three digits, the length of the name; the name; the message."""
        data = bytes(greeting.data)
        digits = data[:_NAME_DIGITS]
        end = _NAME_DIGITS + int(digits) if digits.isdigit() and len(digits) == _NAME_DIGITS else len(data)
        if not self._compat or not _NAME_DIGITS < end < len(data):
            raise WireError("neither a frame nor a message of the old wire")
        try:
            c_name = data[_NAME_DIGITS:end].decode()
        except UnicodeDecodeError:
            raise WireError("the name of an image is not UTF-8") from None
        self._backlog.add_message(c_name, data[end:])
        self.accepted += 1
        self._queued(c_name)

    # ends

    def _forget(self, greeting: Greeting, *, close: bool) -> None:
        if greeting in self._greetings:
            self._greetings.discard(greeting)
            self._loop.remove_reader(greeting.sock.fileno())
            if close:
                greeting.sock.close()

    def _part(self, visit: Visit, problem: Exception | None) -> None:
        if visit in self._visits:
            self._note(problem)
            self._visits.discard(visit)
            self._loop.remove_reader(visit.sock.fileno())
            self._loop.remove_writer(visit.sock.fileno())
            visit.peer.close()

    def _note(self, problem: Exception | None) -> None:
        if isinstance(problem, WireError | Refused):
            self.refused += 1
            logger.warning("a connection to the data port was closed: %s", problem)
