"""The feeder of every connector: takes messages, gives them to leased PEs by their credit, and never blocks.

It talks to the master over one connection: the master tells it which PEs it may send to (a lease of some seconds, renewed long
before), and takes messages for its queue when no PE can. Messages themselves go straight to the PEs. While the master is away,
leases are good for as long as their PEs answer.
"""

import random
import time
from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from frameworks.harmonicio.engine.connector.link import GRACE_SECONDS, Link
from frameworks.harmonicio.engine.connector.low_watermark import Floor
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.errors import Refused
from frameworks.harmonicio.engine.tls import client_context
from frameworks.harmonicio.engine.wire.control_messages import Hello, Leases, Place
from frameworks.harmonicio.engine.wire.frame import Buffer, Sealed, seal, unshared
from frameworks.harmonicio.engine.wire.frame_reader import Buffers
from frameworks.harmonicio.engine.wire.shared_memory import ring

__all__ = ["Feeder", "Options"]

RENEW_SECONDS = 1.0
_LENIENCE = 4
"""So many times `batch_bytes` a frame of messages of different lengths may have: those that differ a little are not worth a cut."""


class Feeder:
    """One stream's feeder; to be used from one thread. Call `step` often, or whenever `socks` are ready."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.session = random.SystemRandom().getrandbits(62)
        self._buffers = Buffers()
        self._ring = ring() if options.shared_memory else None
        hello = Hello("connector", options.c_name, self.session, options.token)
        self._memory = self._ring
        self._hello = replace(hello, shared=self._ring.shared) if self._ring is not None else hello
        self._tls = client_context(options.tls) if options.tls is not None else None
        self._master = Link(Place("master", options.host, options.port), hello, self._buffers, self._tls)
        self._links: dict[str, Link] = {}
        self._again: deque[Sealed] = deque()
        self._floor = Floor()
        self._next = 0
        self._renewed, self._credit_seen = 0.0, time.monotonic()
        self.taken = self.acked = self.failed = self.redelivered = self.queued = 0

    @property
    def unacked(self) -> int:
        """Messages that were taken and are neither acknowledged nor failed."""
        return self.taken - self.acked - self.failed

    @property
    def pes(self) -> int:
        """How many PEs can be sent to."""
        return sum(link.ready for link in self._links.values())

    @property
    def connected(self) -> bool:
        """Whether the master has answered."""
        return self._master.ready

    @property
    def problem(self) -> str:
        """Why the last connection to the master broke, if one did."""
        return self._master.problem

    def watched(self) -> list[tuple[object, bool]]:
        """(socket, whether it is to be written to) of all connections."""
        links = [self._master, *self._links.values()]
        return [(link.sock, link.wants_write) for link in links if link.sock is not None]

    def offer(self, messages: Sequence[Buffer], start: int = 0) -> int:
        """Take as many messages as there is credit for, from number `start` on; the number of the first that was not taken.

        Raises Refused when the first is longer than what is accepted where it would go; none is taken then.
        """
        taken = start
        while taken < len(messages) and not self._again and self._held_bytes() < self._options.held_bytes:
            size = len(messages[taken])
            link = self._best(size, time.monotonic())
            if link is None:
                break
            if size > link.most_bytes:
                if taken > start:
                    break  # it is refused at the next call: what was taken has to be told
                where = f"{link.place.host}:{link.place.port}"
                raise Refused(
                    f"a message of {size} bytes: {where} accepts {link.most_bytes} at most (its message_bytes)"
                )
            frame = self._sealed(messages, taken, link)
            self._send(link, frame)
            taken += frame.count
            self.taken += frame.count
        return taken

    def step(self, now: float | None = None) -> None:
        """Send, receive, renew, reconnect, redeliver: whatever can be done without waiting. Raises Refused."""
        now = time.monotonic() if now is None else now
        if self._master.refused.startswith("refused"):
            raise Refused(f"the master at {self._options.host}:{self._options.port} said: {self._master.refused}")
        self._master.step(now, self._settled, self._leased)
        if now > self._renewed + RENEW_SECONDS:
            self._renewed = now
            self._master.renew()
        for link in list(self._links.values()):
            link.step(now, self._settled, self._leased)
            if (
                (link.unacked and link.lost_for > GRACE_SECONDS)
                or (link.draining and link.sock is None)
                or link.silent(now)
            ):
                self._drop(link)
        while self._again:
            frame = self._again[0]
            best = self._best(frame.size // frame.count, now)
            if best is None:
                break
            self._send(best, self._again.popleft())

    def close(self) -> None:
        """Give up what is not acknowledged."""
        for link in (self._master, *self._links.values()):
            link.close()
        if self._memory is not None:
            self._memory.close()

    def _best(self, message_bytes: int, now: float) -> Link | None:
        """The link with the fewest messages on their way among those with credit; the master's where the overflow goes there."""
        rooms = [(link, link.room(message_bytes)) for link in self._links.values()]
        free = [link for link, room in rooms if room > 0]
        if free:
            self._credit_seen = now
            return min(free, key=lambda link: link.messages)
        overflow = self._options.overflow
        if overflow == "never" or (overflow == "absent" and any(link.ready for link in self._links.values())):
            return None
        if now < self._credit_seen + self._options.patience:
            return None
        return self._master if self._master.room(message_bytes) else None

    def _sealed(self, messages: Sequence[Buffer], start: int, link: Link) -> Sealed:
        options, first = self._options, len(messages[start])
        most_bytes = min(options.batch_bytes, link.most_bytes)
        fitting = (
            max(1, most_bytes // first) if first else 1
        )  # a frame of nothing but empty messages is not accepted anywhere
        most = min(options.batch_messages, fitting, link.room(first))
        if self.pes > 1:  # leave some for the others
            most = min(most, max(1, -(-(len(messages) - start) // self.pes)))
        memory = self._ring if link.shares else None
        most_bytes = min(_LENIENCE * options.batch_bytes, link.most_bytes)
        part, floor = messages[start : start + most], self._floor.lowest(self._next)
        frame = seal(part, self.session, self._next, floor, memory, most_bytes=most_bytes)
        self._floor.add(frame.first)
        self._next += frame.count
        return frame

    def _send(self, link: Link, frame: Sealed) -> None:
        if link is self._master:
            self.queued += frame.count
        if frame.region is not None and not (link.shares and self._ring is not None):
            frame = self._unshared(frame)
        link.send(frame)

    def _unshared(self, frame: Sealed) -> Sealed:
        assert self._memory is not None, "who refers to memory has some"
        assert frame.region is not None
        return unshared(frame, self._memory.read(frame.region, frame.size))

    def _held_bytes(self) -> int:
        return self._master.bytes + sum(link.bytes for link in self._links.values())

    def _settled(self, frames: list[Sealed], failed: int) -> None:
        self.acked += sum(frame.count for frame in frames) - failed
        for frame in frames:
            self._floor.settle(frame.first)
            if frame.region is not None and self._ring is not None:
                self._ring.give_back(frame.region)
        self.failed += failed

    def _leased(self, leases: Leases) -> None:
        """Reach new PEs; those that are not leased any more are dropped once nothing is on its way to them, or they are gone."""
        now, places = time.monotonic(), {place.id: place for place in leases.places}
        for place in places.values():
            if place.id not in self._links:
                self._links[place.id] = Link(place, self._hello, self._buffers, self._tls)
        for link in list(self._links.values()):
            if link.place.id in places:
                link.lapsed = None
            elif not link.unacked or not link.ready:
                self._drop(link)
            elif link.lapsed is None:
                link.lapsed = now

    def _drop(self, link: Link) -> None:
        """Part from a place; what was on its way there goes elsewhere, or, at most once, has failed."""
        frames = link.take_back()
        link.close()
        if any(frame.region is not None for frame in frames):
            self._ring = None  # who was lost may still be reading there: nothing is written into that memory any more
        self._links.pop(link.place.id, None)
        if self._options.delivery == "at-most-once":
            self.failed += sum(frame.count for frame in frames)
            for frame in frames:
                self._floor.settle(frame.first)
            return
        self.redelivered += sum(frame.count for frame in frames)
        self._again.extend(frames)
