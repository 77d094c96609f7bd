"""A connector's connection to one PE, or to the master: what is on its way there, and how much more may be."""

import ssl
import time
from collections.abc import Callable
from secrets import token_hex

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.wire.connection import Peer
from frameworks.harmonicio.engine.wire.control_messages import Bye, Hello, Leases, Place, Welcome
from frameworks.harmonicio.engine.wire.frame import MAX_BODY, Frame, Kind, Sealed, control, read_ack
from frameworks.harmonicio.engine.wire.frame_reader import Buffers

CONNECT_SECONDS = 30.0
"""In which a PE must have answered the greeting; one that is busy with a message answers after it."""
RETRY_SECONDS = (0.02, 0.1, 0.5, 1.0)
"""Between attempts to reach a place again; what is on its way there waits for the first of them, then goes elsewhere."""
GRACE_SECONDS = 1.0
SILENT_SECONDS = 10.0
"""For which a place that is not leased any more may say nothing before what is on its way there goes elsewhere."""
_MAX_CONTROL = 4 * 2**20
_MAX_UNSENT = 2**20
"""Bytes that wait for the kernel, from which on nothing more is added."""

_LARGE = 3
"""So many frames may be on their way, however large: one that is sent, one that waits, one that is processed."""

Settled = Callable[[list[Sealed], int], None]
"""Is told of frames that were acknowledged, and how many of their messages failed."""


class Link:
    """Reaches one place for as long as it is leased."""

    def __init__(self, place: Place, hello: Hello, buffers: Buffers, tls: ssl.SSLContext | None = None) -> None:
        self.place, self._hello, self._buffers, self._tls = place, hello, buffers, tls
        self._peer: Peer | None = None
        self.unacked: dict[tuple[int, int], Sealed] = {}
        """what is on its way, by session and first number, in the order of sending"""
        self.messages = self.bytes = 0
        self._credit = (0, 0)
        self.instance = self._known = ""
        self.most_bytes = MAX_BODY
        """of a frame that is accepted there"""
        self.draining = self.shares = False
        self.lapsed: float | None = None
        """since when it has not been leased; None while it is"""
        self._attempts, self._next_attempt, self._dialled = 0, 0.0, 0.0
        self._since, self._spoke = time.monotonic(), 0.0
        self.id = token_hex(4)

    @property
    def ready(self) -> bool:
        """Whether it has been welcomed, and may be sent something once there is credit."""
        return self._peer is not None and bool(self.instance) and not self.draining

    @property
    def sock(self) -> object | None:
        """To be watched by a selector; None while there is no connection."""
        return None if self._peer is None else self._peer.sock

    @property
    def unsent(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return 0 if self._peer is None else self._peer.unsent

    @property
    def wants_write(self) -> bool:
        """Whether its socket is to be watched for room to write."""
        return self._peer is not None and self._peer.wants_write

    @property
    def credit(self) -> int:
        """Messages that may be on their way there in all."""
        return self._credit[0]

    @property
    def lost_for(self) -> float:
        """Seconds for which there has been no welcome."""
        return 0.0 if self.instance and self._peer is not None else time.monotonic() - self._since

    def silent(self, now: float) -> bool:
        """Whether it left the leases, and has said nothing for too long since."""
        return self.lapsed is not None and now > max(self.lapsed, self._spoke) + SILENT_SECONDS

    def room(self, message_bytes: int) -> int:
        """How many messages of that length it may be sent now; a large one is sent alone where nothing is on its way."""
        if not self.ready or self.unsent > _MAX_UNSENT or self._credit[0] == 0:
            return 0
        by_bytes = max((self._credit[1] - self.bytes) // max(1, message_bytes), int(len(self.unacked) < _LARGE))
        return max(min(self._credit[0] - self.messages, by_bytes), int(not self.unacked), 0)

    def send(self, frame: Sealed) -> None:
        """Send a frame; a connection that breaks is noticed by `step`."""
        self.unacked[frame.session, frame.first] = frame
        self.messages += frame.count
        self.bytes += frame.size
        try:
            if self._peer is not None:
                self._peer.send(frame.buffers)
        except OSError:
            self._broke()

    def step(self, now: float, settled: Settled, leased: Callable[[Leases], None]) -> None:
        """Connect, send what is kept, take in what has come; `settled` hears of acknowledged frames."""
        try:
            if self._peer is None:
                self._connect(now)
            elif not self.instance and now > self._dialled + CONNECT_SECONDS:
                raise EOFError  # noqa: TRY301  an answer that does not come is a connection that is gone
            if self._peer is not None:
                if self._peer.unsent:
                    self._peer.flush()
                for frame in self._peer.read():
                    self._spoke = now
                    self._heard(frame, settled, leased)
        except (EOFError, OSError, WireError) as problem:
            self.problem = str(problem)
            self._broke()

    def renew(self) -> None:
        """Ask the master for the leases again."""
        try:
            if self._peer is not None and self.instance:
                self._peer.send([control(Kind.RENEW)])
        except OSError:
            self._broke()

    def take_back(self) -> list[Sealed]:
        """What is on its way there, to be sent elsewhere."""
        frames, self.unacked = list(self.unacked.values()), {}
        self.messages = self.bytes = 0
        return frames

    def close(self) -> None:
        """Idempotent."""
        peer, self._peer = self._peer, None
        self.instance = ""
        if peer is not None:
            peer.close()

    def _connect(self, now: float) -> None:
        if now < self._next_attempt:
            return
        self._next_attempt = now + RETRY_SECONDS[min(self._attempts, len(RETRY_SECONDS) - 1)]
        self._attempts += 1
        self._dialled = now
        self._peer = Peer.dial(self.place.host, self.place.port, self._buffers, _MAX_CONTROL, self._tls)
        self._peer.send([control(Kind.HELLO, self._hello)])

    def _heard(self, frame: Frame, settled: Settled, leased: Callable[[Leases], None]) -> None:
        match frame.header.kind:
            case Kind.ACK:
                failed, messages, size = read_ack(frame)
                self._credit = (messages, size)
                settled(self._settle(frame.header.session, frame.header.first, frame.header.count), failed)
            case Kind.WELCOME:
                self._welcomed(frame)
            case Kind.LEASES:
                words = frame.words(Leases)
                assert isinstance(words, Leases)
                leased(words)
            case Kind.BYE:
                words = frame.words(Bye)
                assert isinstance(words, Bye)
                self.draining = True
                self.refused = words.reason
            case kind:
                raise WireError(f"a {kind.name} frame does not belong here")
        self._buffers.give(frame)

    refused = problem = ""
    """Why the other side said good-bye, and why the last connection broke."""

    def _welcomed(self, frame: Frame) -> None:
        """A PE that was reached again is sent everything unacknowledged once more: it knows what it has done already.

        Another one at the same address does not; what was on its way goes where that of a lost place does.
        """
        words = frame.words(Welcome)
        assert isinstance(words, Welcome)
        known, self._known = self._known or words.instance, words.instance
        if self.unacked and words.instance != known:
            self.draining = True
            raise EOFError
        self.instance, self._credit = words.instance, (words.credit_messages, words.credit_bytes)
        self.shares, self.most_bytes = words.shared, min(words.most_bytes, MAX_BODY)
        self._attempts, self.draining = 0, False
        if self._peer is not None:
            for sealed in self.unacked.values():
                self._peer.send(sealed.buffers)

    def _settle(self, session: int, first: int, count: int) -> list[Sealed]:
        """Forget the acknowledged frames, and return them."""
        at, settled = first, list[Sealed]()
        while at < first + count and (sealed := self.unacked.pop((session, at), None)) is not None:
            at += sealed.count
            self.bytes -= sealed.size
            self.messages -= sealed.count
            settled.append(sealed)
        return settled

    def _broke(self) -> None:
        if self._peer is not None and self.instance:
            self._since = time.monotonic()
        self.close()
