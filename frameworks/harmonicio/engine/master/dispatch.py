"""Delivery from the queue: frames are pushed to PEs within their credit, and single messages to idle legacy PEs."""

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Sequence

from frameworks.harmonicio.engine.connector.coroutine import wait_for_sockets_async
from frameworks.harmonicio.engine.connector.link import Link
from frameworks.harmonicio.engine.connector.link_set import LinkSet, TakenBack
from frameworks.harmonicio.engine.connector.link_state import Settled
from frameworks.harmonicio.engine.master.frame_storage import QueuedFrame
from frameworks.harmonicio.engine.master.queue import MessageQueue
from frameworks.harmonicio.engine.master.registry import RegisteredPe, Registry
from frameworks.harmonicio.engine.observer import ack_transfer, data_transfer
from frameworks.harmonicio.engine.tasks import end_process_on_error
from frameworks.harmonicio.engine.wire.control_messages import Hello
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, MAX_BODY_BYTES, EncodedFrame
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool

logger = logging.getLogger(__name__)

_LEGACY_TIMEOUT_S = 10.0
_MAX_WAIT_S = 0.05
_RETRY_INTERVAL_S = 1.0


class Dispatcher:
    """Delivers one stream, until nothing of it is in the queue or unacknowledged.

    Args:
        c_name: name of the stream.
        queue: the master's queue.
        registry: its PEs.
        token: of connectors, which PEs require.
        tls: context for TLS; plain TCP when None.
    """

    def __init__(
        self, c_name: str, queue: MessageQueue, registry: Registry, token: str, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._c_name, self._queue, self._registry = c_name, queue, registry
        hello = Hello("master", c_name, random.SystemRandom().getrandbits(62), token)
        self._links = LinkSet(hello, BufferPool(), tls)
        self._too_large: list[QueuedFrame] = []
        """messages that no PE accepts; they wait here so that they do not delay those behind them"""
        self._changed = asyncio.Event()
        self.delivered = self.failed = 0

    @property
    def links(self) -> LinkSet:
        """Return the links to the PEs of the stream."""
        return self._links

    def notify(self) -> None:
        """Wake the dispatcher: a message was queued, or a PE came or went."""
        self._changed.set()

    async def run(self) -> None:
        """Deliver all that is in the queue, and what comes meanwhile."""
        while self._queue.length(self._c_name) or self._links.has_unacked:
            try:
                self.step(time.monotonic())
                await self._deliver_to_legacy_pes()
            except OSError as error:  # of the journal: a full disk, for example
                logger.error("nothing of %s is delivered for a second: %s", self._c_name, error)  # noqa: TRY400
                await asyncio.sleep(_RETRY_INTERVAL_S)
            await wait_for_sockets_async(self._links.sockets(), _MAX_WAIT_S, self._changed)
        self.close()

    def step(self, now: float) -> None:
        """Do everything that can be done without waiting; `now` is monotonic seconds. Raises OSError of the journal."""
        self._handle(self._links.follow(self._registry.addresses(self._c_name), now), now)
        worked = self._handle(self._links.step(now), now)
        ready = [link for link in self._links if link.ready]
        self._requeue_accepted(ready)
        while ready and (frame := self._queue.peek(self._c_name)) is not None and self._deliver(frame, ready):
            worked = True
        if worked:
            self._queue.trace.worked("serialize", now)

    def close(self) -> None:
        """Close all links; their unacknowledged frames wait in the queue again."""
        self._handle(self._links.close(), time.monotonic())

    def _deliver(self, frame: QueuedFrame, ready: list[Link]) -> bool:
        """Send the oldest frame to a PE, or split it to fit; return False when no PE has credit left."""
        header = frame.header
        message_bytes = header.size // header.count
        able = [link for link in ready if message_bytes <= link.state.max_body_bytes]
        free = [link for link in able if link.available(message_bytes) > 0]
        if not able and header.count == 1:
            self._set_aside(max(link.state.max_body_bytes for link in ready))
        elif not able:
            self._queue.split(self._c_name, 1)
        elif not free:
            return False
        else:
            self._deliver_to(min(free, key=lambda link: link.state.unacked.messages), frame)
        return True

    def _deliver_to(self, link: Link, frame: QueuedFrame) -> None:
        """Send the oldest frame to a PE that has credit, or split it when it exceeds the credit or the PE's limit.

        It is sent as it is where a full disk does not allow a split: its delivery frees space.
        """
        max_messages, max_bytes = link.state.credit[0], link.state.max_body_bytes
        if frame.header.count > max_messages or frame.header.size > max_bytes:
            try:
                self._queue.split(self._c_name, max_messages, max_bytes)
            except OSError:
                if frame.header.size > max_bytes:
                    raise
            else:
                return
        self._send(frame, link)

    def _send(self, frame: QueuedFrame, link: Link) -> None:
        view = memoryview(self._queue.data(frame))  # first: a frame that cannot be read keeps waiting
        self._queue.take(self._c_name)
        if self._queue.trace.on:
            self._queue.trace.sent(data_transfer(frame.header, "from the queue"))
        buffers = [view[:HEADER_BYTES], view[HEADER_BYTES:]]
        link.send(EncodedFrame(*frame.key, frame.header.count, frame.header.size, [*buffers]))

    def _set_aside(self, max_bytes: int) -> None:
        """Set the oldest message aside, which no PE accepts, until there is a PE that does."""
        frame = self._queue.take(self._c_name)
        assert frame is not None, "the caller has peeked at it"
        self._too_large.append(frame)
        text = "a message of %d bytes of %s waits: its PEs accept %d at most (their message_bytes)"
        logger.error(text, frame.header.size, self._c_name, max_bytes)

    def _requeue_accepted(self, ready: list[Link]) -> None:
        """Let messages that were set aside wait again where a PE accepts them, or where there is no PE of ours."""
        max_bytes = max((link.state.max_body_bytes for link in ready), default=MAX_BODY_BYTES)
        for frame in [one for one in self._too_large if one.header.size <= max_bytes]:
            self._too_large.remove(frame)
            self._queue.put_back(self._c_name, frame.key)

    def _handle(self, events: Sequence[Settled | TakenBack], now: float) -> bool:
        """Take in what became of frames; return whether there was anything."""
        for event in events:
            if isinstance(event, Settled):
                self.failed += event.failed
                if self._queue.trace.on and event.frames:
                    first = event.frames[0]
                    acked = ack_transfer(first.session, first.first, first.count, "from the queue")
                    self._queue.trace.received(acked, now)
                for frame in event.frames:
                    self.delivered += frame.count
                    self._queue.done(self._c_name, (frame.session, frame.first))
                continue
            for frame in reversed(event.frames):
                self._queue.put_back(self._c_name, (frame.session, frame.first))
        return bool(events)

    async def _deliver_to_legacy_pes(self) -> None:
        """Contact legacy PEs that wait for a connection: they poll only after a message."""
        while not self._registry.addresses(self._c_name) and self._queue.peek_message(self._c_name) is not None:
            pe = self._registry.assign_idle(self._c_name, time.monotonic())
            if pe is None:
                return
            await self._deliver_to_legacy_pe(pe)

    async def _deliver_to_legacy_pe(self, pe: RegisteredPe) -> None:
        """Send the oldest message to a legacy PE; it waits again unless all of it was sent."""
        taken = self._queue.take_message(self._c_name)
        if taken is None:
            return
        frame, message = taken
        sent = False
        try:
            await _send_raw(message, pe)
            sent = True
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: the address is not valid
            logger.warning("the legacy PE at %s:%d cannot be reached: %s", pe.address.host, pe.address.port, error)
        finally:  # also when the master is stopped
            if sent:
                self._queue.done(self._c_name, frame.key)
            else:
                self._queue.put_back(self._c_name, frame.key)
        self._registry.remove_idle(pe)


async def _send_raw(message: bytes, pe: RegisteredPe) -> None:
    """Open a connection, send, close; raises OSError, TimeoutError or ValueError."""
    async with asyncio.timeout(_LEGACY_TIMEOUT_S):
        _, writer = await asyncio.open_connection(pe.address.host, pe.address.port)
        writer.write(message)
        await writer.drain()
        writer.close()
        await writer.wait_closed()


class Dispatchers:
    """The dispatchers of all streams with messages: one is started when needed, and ends when its stream is empty."""

    def __init__(
        self, queue: MessageQueue, registry: Registry, token: str, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._queue, self._registry, self._token, self._tls = queue, registry, token, tls
        self._running: dict[str, tuple[Dispatcher, asyncio.Task[None]]] = {}
        self._delivered_before = 0

    def __len__(self) -> int:
        """Return the number of streams that are being delivered."""
        return len(self._running)

    @property
    def delivered(self) -> int:
        """Return the messages of the queue that PEs acknowledged."""
        return self._delivered_before + sum(one.delivered for one, _ in self._running.values())

    def deliver(self, c_name: str) -> None:
        """Deliver a stream, of which a message was queued; to be called within a running loop."""
        if c_name not in self._running:
            dispatcher = Dispatcher(c_name, self._queue, self._registry, self._token, tls=self._tls)
            task = asyncio.create_task(self._run(dispatcher, c_name))
            self._running[c_name] = (dispatcher, task)
            task.add_done_callback(end_process_on_error)
        self._running[c_name][0].notify()

    def notify(self, c_name: str) -> None:
        """Wake the dispatcher of a stream, if it has one: a PE came or went."""
        if c_name in self._running:
            self._running[c_name][0].notify()

    async def close(self) -> None:
        """Stop all dispatchers."""
        tasks = [task for _, task in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, dispatcher: Dispatcher, c_name: str) -> None:
        """Run a dispatcher to its end, and count what it delivered."""
        try:
            await dispatcher.run()
        finally:
            del self._running[c_name]
            self._delivered_before += dispatcher.delivered
