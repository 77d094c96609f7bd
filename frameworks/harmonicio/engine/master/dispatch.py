"""Delivers what is in the queue: pushes frames to PEs by their credit, and single messages to idle old PEs."""

import asyncio
import logging
import random
import ssl
import time

from frameworks.harmonicio.engine.connector.coroutine import readiness
from frameworks.harmonicio.engine.connector.link import GRACE_SECONDS, Link
from frameworks.harmonicio.engine.master.queue import Backlog, Entry
from frameworks.harmonicio.engine.master.registry import Pe, Registry
from frameworks.harmonicio.engine.wire.control_messages import Hello, Leases
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, MAX_BODY, Sealed
from frameworks.harmonicio.engine.wire.frame_reader import Buffers

logger = logging.getLogger(__name__)

_OLD_SECONDS = 10.0


class Dispatcher:
    """One stream's; runs until nothing of it is in the queue, and nothing on its way from there."""

    def __init__(
        self, c_name: str, backlog: Backlog, registry: Registry, token: str, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._c_name, self._backlog, self._registry, self._tls = c_name, backlog, registry, tls
        self._hello = Hello("master", c_name, random.SystemRandom().getrandbits(62), token)
        self._links: dict[str, Link] = {}
        self._buffers = Buffers()
        self._aside: list[Entry] = []
        self._changed = asyncio.Event()
        self.delivered = self.failed = 0

    def changed(self) -> None:
        """Something was queued, or a PE came or went."""
        self._changed.set()

    async def run(self) -> None:
        """Deliver all that is in the queue, and what comes meanwhile."""
        while self._backlog.length(self._c_name) or any(link.unacked for link in self._links.values()):
            try:
                self.step(time.monotonic())
                await self._to_old_pes()
            except OSError as problem:  # of the journal: a full disk, say
                logger.error("nothing of %s is delivered for a second: %s", self._c_name, problem)  # noqa: TRY400
                await asyncio.sleep(1)
            await readiness(
                [(link.sock, link.wants_write) for link in self._links.values() if link.sock], 0.05, self._changed
            )
        self._close()

    def step(self, now: float) -> None:
        """Whatever can be done without waiting."""
        self._follow_registry(now)
        for link in list(self._links.values()):
            link.step(now, self._settled, _no_leases)
            if (
                (link.unacked and link.lost_for > GRACE_SECONDS)
                or (link.draining and link.sock is None)
                or link.silent(now)
            ):
                self._drop(link)
        ready = [link for link in self._links.values() if link.ready]
        self._take_up(ready)
        while ready and (entry := self._backlog.peek(self._c_name)) is not None and self._deliver(entry, ready):
            pass

    def _deliver(self, entry: Entry, ready: list[Link]) -> bool:
        """Give the oldest frame to a PE, or fit it to what PEs let be on its way, and accept; False when none has credit left."""
        header = entry.header
        each = header.size // header.count
        able = [link for link in ready if each <= link.most_bytes]
        free = [link for link in able if link.room(each) > 0]
        if not able and header.count == 1:
            self._set_aside(max(link.most_bytes for link in ready))
        elif not able:
            self._backlog.split(self._c_name, 1)
        elif not free:
            return False
        else:
            self._fit(entry, min(free, key=lambda link: link.messages))
        return True

    def _fit(self, entry: Entry, link: Link) -> None:
        """Give the oldest frame to a PE that has credit; one that is beyond that is taken apart first.

        It goes as it is where a full disk does not let it be taken apart: what is delivered makes room.
        """
        if entry.header.count > link.credit or entry.header.size > link.most_bytes:
            try:
                self._backlog.split(self._c_name, link.credit, link.most_bytes)
            except OSError:
                if entry.header.size > link.most_bytes:
                    raise
            else:
                return
        self._send(entry, link)

    def _send(self, entry: Entry, link: Link) -> None:
        view = memoryview(self._backlog.data(entry))  # first: what cannot be read still waits
        self._backlog.take(self._c_name)
        link.send(Sealed(*entry.key, entry.header.count, entry.header.size, [view[:HEADER_BYTES], view[HEADER_BYTES:]]))

    def _set_aside(self, most_bytes: int) -> None:
        """Have the oldest message, which no PE accepts, be in nobody's way until there is one that does."""
        entry = self._backlog.take(self._c_name)
        assert entry is not None, "the oldest was looked at"
        self._aside.append(entry)
        text = "a message of %d bytes of %s waits: its PEs accept %d at most (their message_bytes)"
        logger.error(text, entry.header.size, self._c_name, most_bytes)

    def _take_up(self, ready: list[Link]) -> None:
        """Have what was set aside wait again where a PE accepts it, or where there are none of ours."""
        most_bytes = max((link.most_bytes for link in ready), default=MAX_BODY)
        for entry in [one for one in self._aside if one.header.size <= most_bytes]:
            self._aside.remove(entry)
            self._backlog.back(self._c_name, entry.key)

    def _follow_registry(self, now: float) -> None:
        places = {place.id: place for place in self._registry.places(self._c_name)}
        for place in places.values():
            if place.id not in self._links:
                self._links[place.id] = Link(place, self._hello, self._buffers, self._tls)
        for link in list(self._links.values()):
            if link.place.id in places:
                link.lapsed = None
            elif not link.ready:
                self._drop(link)
            elif link.lapsed is None:
                link.lapsed = now

    def _settled(self, frames: list[Sealed], failed: int) -> None:
        self.failed += failed
        for frame in frames:
            self.delivered += frame.count
            self._backlog.done(self._c_name, (frame.session, frame.first))

    def _drop(self, link: Link) -> None:
        for frame in reversed(link.take_back()):
            self._backlog.back(self._c_name, (frame.session, frame.first))
        link.close()
        self._links.pop(link.place.id, None)

    def _close(self) -> None:
        for link in list(self._links.values()):
            self._drop(link)

    async def _to_old_pes(self) -> None:
        """Contact old PEs that wait for a connection: they poll only after a message, so nobody else would."""
        while self._backlog.peek(self._c_name) is not None and not self._registry.places(self._c_name):
            pe = self._registry.hand_out(self._c_name, time.monotonic())
            if pe is None:
                return
            await self._push(pe)

    async def _push(self, pe: Pe) -> None:
        """Bring an old PE the oldest message, which waits again unless all of it was sent, whatever happens meanwhile."""
        taken = self._backlog.take_message(self._c_name)
        if taken is None:
            return
        entry, message = taken
        sent = False
        try:
            await _bring(message, pe)
            sent = True
            self._registry.withdraw(pe)
        except (OSError, TimeoutError, ValueError) as problem:  # ValueError: of an address that is none
            logger.warning("the old PE at %s:%d cannot be reached: %s", pe.place.host, pe.place.port, problem)
            self._registry.forget_idle(pe)
        finally:  # also when the master is told to end
            if sent:
                self._backlog.done(self._c_name, entry.key)
            else:
                self._backlog.back(self._c_name, entry.key)


async def _bring(message: bytes, pe: Pe) -> None:
    """Open, send, close; raises OSError, TimeoutError or ValueError."""
    async with asyncio.timeout(_OLD_SECONDS):
        _, writer = await asyncio.open_connection(pe.place.host, pe.place.port)
        writer.write(message)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def _no_leases(leases: Leases) -> None:
    """PEs do not lease anything."""
