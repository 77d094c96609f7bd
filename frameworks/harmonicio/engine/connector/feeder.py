"""The feeder of every connector: takes messages, sends them to leased PEs within their credit, and never blocks.

It has one connection to the master, which leases PEs to it (for some seconds, renewed long before) and takes
messages for its queue when no PE can. Messages go straight to the PEs. While the master is away, leases stay valid
as long as their PEs answer.
"""

import random
import time
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from frameworks.harmonicio.engine.connector.feeder_state import FeederState, OverflowRule
from frameworks.harmonicio.engine.connector.link import Link
from frameworks.harmonicio.engine.connector.link_set import LinkSet, TakenBack
from frameworks.harmonicio.engine.connector.link_state import Settled
from frameworks.harmonicio.engine.connector.options import Options
from frameworks.harmonicio.engine.errors import MessageTooLongError, RefusedError
from frameworks.harmonicio.engine.observer import Hop, Observer, ack_transfer, data_transfer, lease_transfer
from frameworks.harmonicio.engine.tls import client_context
from frameworks.harmonicio.engine.wire.control_messages import Hello, Leases, NodeAddress
from frameworks.harmonicio.engine.wire.frame import Buffer, EncodedFrame, encode_frame, with_inline_body
from frameworks.harmonicio.engine.wire.frame_reader import BufferPool
from frameworks.harmonicio.engine.wire.shared_memory import create_shared_memory
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket

RENEW_INTERVAL_S = 1.0
_MAX_MIXED_BATCHES = 4
"""A frame of messages of different lengths may have this many times `batch_bytes`, which avoids small remainders."""


class Feeder:
    """Feeds one stream, from one thread. Call `step` often, or whenever a socket of `watched_sockets` is ready."""

    def __init__(self, options: Options) -> None:
        session, buffers = random.SystemRandom().getrandbits(62), BufferPool()
        self._options = options
        self._state = FeederState(session, redeliver=options.delivery == "at-least-once")
        self._overflow = OverflowRule.of(options, time.monotonic())
        self._memory = create_shared_memory() if options.shared_memory else None
        tls = client_context(options.tls) if options.tls is not None else None
        hello = Hello("connector", options.c_name, session, options.token)
        self._master = Link(NodeAddress("master", options.host, options.port), hello, buffers, tls)
        offer = hello if self._memory is None else replace(hello, shared=self._memory.handle)
        self._links = LinkSet(offer, buffers, tls)
        self._renewed_at = 0.0
        self.observer: Observer | None = None
        """told of the frames that pass; not of waits: who calls `step` knows when there was nothing to do"""

    @property
    def taken(self) -> int:
        """Return the messages that were accepted."""
        return self._state.taken

    @property
    def acked(self) -> int:
        """Return the messages that were acknowledged."""
        return self._state.acked

    @property
    def failed(self) -> int:
        """Return the messages that failed."""
        return self._state.failed

    @property
    def redelivered(self) -> int:
        """Return the messages that were sent again."""
        return self._state.redelivered

    @property
    def queued(self) -> int:
        """Return the messages that were sent to the master's queue."""
        return self._state.queued

    @property
    def unacked(self) -> int:
        """Return the messages that were taken and are neither acknowledged nor failed."""
        return self._state.unacked

    @property
    def pes(self) -> int:
        """Return the number of PEs that take messages."""
        return self._links.ready

    @property
    def connected(self) -> bool:
        """Return whether the master has answered."""
        return self._master.ready

    @property
    def error(self) -> str:
        """Return why the last connection to the master broke; empty when none did."""
        return self._master.state.error

    def watched_sockets(self) -> list[tuple[StreamSocket, bool]]:
        """Return (socket, whether to watch it for being writable) of all connections."""
        master = [] if self._master.sock is None else [(self._master.sock, self._master.wants_write)]
        return [*master, *self._links.sockets()]

    def offer(self, messages: Sequence[Buffer], start: int = 0) -> int:
        """Take messages from `start` on while there is credit.

        Returns:
            The index of the first message that was not taken.

        Raises:
            MessageTooLongError: the first message is longer than any receiver accepts; no message is taken then.
        """
        state, taken = self._state, start
        while (
            taken < len(messages) and not state.to_resend and self._unacked_bytes() < self._options.max_in_flight_bytes
        ):
            size = len(messages[taken])
            link = self._choose_link(size, size, time.monotonic())
            most = self._most_accepting() or link if link is None or link is self._master else link
            if most is not None and size > most.state.max_body_bytes:
                if taken > start:
                    break  # the next call refuses it: the caller must learn first what was taken
                where, limit = f"{most.address.host}:{most.address.port}", most.state.max_body_bytes
                raise MessageTooLongError(
                    f"a message of {size} bytes: {where} accepts {limit} at most (its message_bytes)"
                )
            if link is None:
                break
            frame = self._encode(messages, taken, link)
            state.add(frame)
            self._send(link, frame)
            taken += frame.count
        return taken

    def step(self, now: float | None = None) -> None:
        """Send, receive, renew, reconnect, redeliver: everything that can be done without waiting.

        Args:
            now: monotonic seconds; the current time when left out.

        Raises:
            RefusedError: the master refuses this connector.
        """
        now = time.monotonic() if now is None else now
        if (refusal := self._master.state.refusal).startswith("refused"):
            raise RefusedError(f"the master at {self._options.host}:{self._options.port} said: {refusal}")
        for event in self._master.step(now):
            if isinstance(event, Leases):
                if self.observer is not None:
                    self.observer.received(lease_transfer(self._state.session, event.number), now)
                self._handle(self._links.follow(event.addresses, time.monotonic()))
            else:
                self._observe_ack(event, "to the queue", now)
                self._handle([event])
        if now > self._renewed_at + RENEW_INTERVAL_S:
            self._renewed_at = now
            self._master.renew()
        events = self._links.step(now)
        for each in events:
            self._observe_ack(each, "direct", now)
        self._handle(events)
        self._resend(now)

    def close(self) -> None:
        """Close all connections and give up what is not acknowledged."""
        self._master.close()
        for link in self._links:
            link.close()
        if self._memory is not None:
            self._memory.close()

    def _choose_link(self, size: int, message_bytes: int, now: float) -> Link | None:
        """Return the link with credit and the fewest unacknowledged messages; the master's on overflow.

        Args:
            size: length of the body, which a PE must accept; that the master does is for the caller to see.
            message_bytes: length of each message in it.
            now: monotonic seconds.
        """
        able = [link for link in self._links if link.ready and size <= link.state.max_body_bytes]
        free = [link for link in able if link.available(message_bytes) > 0]
        if free:
            self._overflow.last_credit = now
            return min(free, key=lambda link: link.state.unacked.messages)
        if not self._overflow.allows(now, len(able)):
            return None
        return self._master if self._master.available(message_bytes) else None

    def _most_accepting(self) -> Link | None:
        """Return the link to the PE that accepts the longest messages; None where there is no PE."""
        ready = (link for link in self._links if link.ready)
        return max(ready, key=lambda link: link.state.max_body_bytes, default=None)

    def _encode(self, messages: Sequence[Buffer], start: int, link: Link) -> EncodedFrame:
        """Return a frame of as many of the messages from `start` on as fit the options and the link."""
        options, first_bytes, max_body_bytes = self._options, len(messages[start]), link.state.max_body_bytes
        fitting = max(1, min(options.batch_bytes, max_body_bytes) // max(1, first_bytes))
        count = min(options.batch_messages, fitting, link.available(first_bytes))
        if (pes := self.pes) > 1:  # leave some for the others
            count = min(count, max(1, -(-(len(messages) - start) // pes)))
        memory = self._memory if _reads_memory(link) else None
        max_bytes = min(_MAX_MIXED_BATCHES * options.batch_bytes, max_body_bytes)
        state = self._state
        return encode_frame(
            messages[start : start + count], state.session, state.next_number, state.low_watermark, memory,
            max_bytes=max_bytes
        )  # fmt: skip

    def _send(self, link: Link, frame: EncodedFrame) -> None:
        if link is self._master:
            self._state.queued += frame.count
        memory = self._memory
        if frame.region is not None and memory is not None and (memory.retired or not _reads_memory(link)):
            frame = with_inline_body(frame, memory.read(frame.region, frame.size))
        if self.observer is not None:
            hop: Hop = "to the queue" if link is self._master else "direct"
            self.observer.sent(data_transfer(frame, hop), time.monotonic())
        link.send(frame)

    def _resend(self, now: float) -> None:
        to_resend = self._state.to_resend
        while to_resend:
            size, count = to_resend[0].size, to_resend[0].count
            link = self._choose_link(size, size // count, now)
            if link is None or size > link.state.max_body_bytes:
                break
            self._send(link, to_resend.popleft())

    def _handle(self, events: Iterable[Settled | TakenBack]) -> None:
        for event in events:
            if isinstance(event, Settled):
                self._state.settle(event)
                for frame in event.frames:
                    if frame.region is not None and self._memory is not None:
                        self._memory.give_back(frame.region)
                continue
            if self._memory is not None and any(frame.region is not None for frame in event.frames):
                self._memory.retire()  # the lost PE may still read there
            self._state.take_back(event.frames)

    def _observe_ack(self, event: Settled | TakenBack, hop: Hop, now: float) -> None:
        """Tell an observer of an acknowledgement, which has the number of the first frame that it settles."""
        if self.observer is not None and isinstance(event, Settled) and event.frames:
            first = event.frames[0]
            count = sum(frame.count for frame in event.frames)
            self.observer.received(ack_transfer(first.session, first.first, count, hop), now)

    def _unacked_bytes(self) -> int:
        return self._master.state.unacked.bytes + self._links.unacked_bytes


def _reads_memory(link: Link) -> bool:
    return link.state.welcome is not None and link.state.welcome.shared
