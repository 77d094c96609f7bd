"""The master's data port: connectors are told their leases, and bring what goes to the queue; old ones in the old framing.

An acknowledgement from here means: the message is in the journal, and the journal is on the disk (or, without a journal, that the
message is in memory).
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from secrets import compare_digest, token_hex

from frameworks.harmonicio.engine.errors import Refused, WireError
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue import Backlog
from frameworks.harmonicio.engine.master.registry import Registry
from frameworks.harmonicio.engine.wire.acceptor import Doorstep
from frameworks.harmonicio.engine.wire.connection import Peer
from frameworks.harmonicio.engine.wire.control_messages import Bye, Hello, Leases, Welcome
from frameworks.harmonicio.engine.wire.frame import EQUAL, Frame, Header, Kind, ack, control, header_bytes
from frameworks.harmonicio.engine.wire.frame_reader import Buffers
from frameworks.harmonicio.engine.wire.handshake import TIMEOUT_S
from frameworks.harmonicio.engine.wire.tls_socket import Line

logger = logging.getLogger(__name__)

MAX_VISITS = 4096
_HELLO_BYTES = 2**16
_NAME_DIGITS, _NAME_BYTES = 3, 1002
_SHARE = (65536, 64 * 2**20)
"""Most messages and bytes on their way from one connector."""
_REST = 1.0
"""Seconds for which nothing is asked for once the journal took nothing: who is parted from is back at once, with all of it."""


class Visit:
    """A connector's connection."""

    def __init__(self, sock: Line, buffers: Buffers) -> None:
        self.peer, self.sock, self.began = Peer(sock, buffers, _HELLO_BYTES), sock, time.monotonic()
        self.c_name, self.session, self.starved = "", 0, False


class DataPort:
    """Listens within a running loop, until `close`."""

    def __init__(
        self, listener: socket.socket, registry: Registry, backlog: Backlog, journal: Journal | None, *, token: str, compat: bool,
        most_message: int, queued: Callable[[str], None], tls: ssl.SSLContext | None = None,
    ) -> None:  # fmt: skip
        listener.listen(512)
        listener.settimeout(0)
        self._listener, self._registry, self._backlog, self._journal = listener, registry, backlog, journal
        self._token, self._compat, self._most_message, self._queued = token, compat, most_message, queued
        self._instance, self._buffers = token_hex(8), Buffers()
        self._visits: set[Visit] = set()
        self._doorstep = Doorstep(listener, self, most_message + _NAME_BYTES if compat else _HELLO_BYTES, tls)
        self._uncommitted: list[tuple[Visit, Header]] = []
        self._committing: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener.fileno(), self._accept)
        self._told, self._rest_until = 0, 0.0
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
        self._doorstep.drop_overdue(now)
        for visit in list(self._visits):
            if not visit.c_name and now > visit.began + TIMEOUT_S:
                self._part(visit, None)
            elif visit.starved and (credit := self._credit())[0] > 0:
                self._tell_credit(visit, credit)

    def close(self) -> None:
        """Stop listening, close every connection."""
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        self._doorstep.close()
        for visit in list(self._visits):
            self._part(visit, None)

    # connections

    def _accept(self) -> None:
        self._doorstep.accept(MAX_VISITS - len(self._visits))

    def watch(self, sock: Line, hear: Callable[[], None]) -> None:
        self._loop.add_reader(sock.fileno(), hear)

    def unwatch(self, sock: Line) -> None:
        self._loop.remove_reader(sock.fileno())

    def admit(self, sock: Line, data: bytes) -> None:
        visit = Visit(sock, self._buffers)
        self._visits.add(visit)
        self._loop.add_reader(sock.fileno(), self._serve, visit)
        self._serve(visit, data)

    def _serve(self, visit: Visit, data: bytes | None = None) -> None:
        try:
            self._take(visit, visit.peer.read() if data is None else visit.peer.reader.feed(data))
        except Refused as problem:
            self._turn_away(visit, problem)
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
        credit = self._noted(visit, self._credit())
        self._send(visit, control(Kind.WELCOME, Welcome(self._instance, *credit, most_bytes=self._most_message)))
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
        if header.flags & ~EQUAL:
            raise WireError("a frame for the queue has its messages within itself")
        head = header_bytes(
            Kind.DATA, header.size, header.body_crc, flags=header.flags, count=header.count,
            ids=(header.session, header.first, header.floor),
        )  # fmt: skip
        frame.batch()  # raises WireError when it is not what it should be
        try:
            self._backlog.add(visit.c_name, head, frame.body)
        except Refused as problem:
            raise WireError(f"a frame cannot be queued: {problem}") from None
        except OSError as problem:
            raise Refused(f"the journal takes nothing: {problem}") from None
        self.accepted += header.count
        self._uncommitted.append((visit, header))
        if self._committing is None:
            self._committing = self._loop.create_task(self._commit())

    async def _commit(self) -> None:
        """Acknowledge until nothing waits for it."""
        try:
            await self._acknowledge()
        finally:
            self._committing = None

    async def _acknowledge(self) -> None:
        """Acknowledge what is on the disk, all of a moment together; part from who brought what the disk did not take."""
        while self._uncommitted:
            now, self._uncommitted = self._uncommitted, []
            if self._journal is not None:
                try:
                    await self._loop.run_in_executor(None, self._journal.commit)
                except OSError as problem:
                    logger.error("nothing is acknowledged: %s", problem)  # noqa: TRY400  one line is enough
                    for visit, _ in now:
                        self._part(visit, problem)
                    await asyncio.sleep(_REST)
            credit = self._credit()
            for visit, header in now:
                if visit in self._visits:
                    visit.starved = credit[0] == 0
                    self._send(visit, ack(header.session, header.first, header.count, failed=0, credit=credit))
            self._take_back(credit)
            for c_name in {visit.c_name for visit, _ in now}:
                self._queued(c_name)

    def _credit(self) -> tuple[int, int]:
        """What one connector may have on its way here; nothing once there is not room for a large message, or on a full disk.

        Half of the room is shared out, so that it is enough for twice the share, too (`_take_back`).
        """
        messages, size = self._backlog.room()
        visits = max(1, len(self._visits))
        resting = time.monotonic() < self._rest_until
        if resting or messages < visits or size < min(self._most_message, _SHARE[1]):
            return 0, 0
        return min(_SHARE[0], messages // visits), min(_SHARE[1], max(1, size // (2 * visits)))

    def _noted(self, visit: Visit, credit: tuple[int, int]) -> tuple[int, int]:
        """The same credit, of which is noted that a connector is told it."""
        visit.starved = credit[0] == 0
        self._told = max(self._told, credit[1])
        return credit

    def _tell_credit(self, visit: Visit, credit: tuple[int, int]) -> None:
        self._send(visit, ack(0, 0, 0, failed=0, credit=self._noted(visit, credit)))

    def _take_back(self, credit: tuple[int, int]) -> None:
        """Tell everybody once there is less than half of what was told: who was idle would count on it."""
        if 2 * credit[1] >= self._told:
            self._told = max(self._told, credit[1])
            return
        self._told = credit[1]
        for visit in list(self._visits):
            if visit.c_name:
                self._tell_credit(visit, credit)

    def put_raw(self, message: bytes) -> None:
        """Queue an old connector's message: three digits, the length of the name; the name; the message."""
        digits = message[:_NAME_DIGITS]
        end = _NAME_DIGITS + int(digits) if digits.isdigit() and len(digits) == _NAME_DIGITS else len(message)
        if not self._compat or not _NAME_DIGITS < end < len(message):
            raise WireError("neither a frame nor a message of the old wire")
        if len(message) - end > self._most_message:
            raise WireError(f"a message of {len(message) - end} bytes; at most {self._most_message} are accepted here")
        try:
            c_name = message[_NAME_DIGITS:end].decode()
        except UnicodeDecodeError:
            raise WireError("the name of an image is not UTF-8") from None
        try:
            self._backlog.add_message(c_name, message[end:])
        except OSError as problem:
            raise Refused(f"the journal takes nothing: {problem}") from None
        self.accepted += 1
        self._queued(c_name)

    # ends

    def _turn_away(self, visit: Visit, problem: Refused) -> None:
        """Hear no more of a connector whose frame the journal did not take, and part from it a little later."""
        self.note(problem)
        self._rest_until = time.monotonic() + _REST
        self._loop.remove_reader(visit.sock.fileno())
        self._loop.call_later(_REST, self._part, visit, None)

    def _part(self, visit: Visit, problem: Exception | None) -> None:
        if visit in self._visits:
            self.note(problem)
            self._visits.discard(visit)
            self._loop.remove_reader(visit.sock.fileno())
            self._loop.remove_writer(visit.sock.fileno())
            visit.peer.close()

    def note(self, problem: Exception | None) -> None:
        if isinstance(problem, WireError | Refused):
            self.refused += 1
            logger.warning("a connection to the data port was closed: %s", problem)
