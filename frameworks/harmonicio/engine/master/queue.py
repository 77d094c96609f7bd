"""The master's queue: for each stream the frames that no PE could take, limited by count and bytes, oldest first.

A frame waits, or is out (and waits again when it is not acknowledged), or is done and removed. With a journal,
bodies beyond the memory limit are left on the disk and read when their turn comes (`frame_storage`).
"""

import logging
import random
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.master.frame_storage import FrameStorage, QueuedFrame
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.queue_trace import QueueTrace
from frameworks.harmonicio.engine.wire.frame import (
    HEADER_BYTES,
    MAX_BODY_BYTES,
    Batch,
    Buffer,
    Frame,
    FrameHeader,
    decode_header,
    encode_frame,
)
from frameworks.harmonicio.engine.wire.sequence_ranges import SequenceRanges

logger = logging.getLogger(__name__)

MAX_STREAMS, MAX_SESSIONS = 10_000, 4096


@dataclass(slots=True)
class StreamQueue:
    """The queue of one stream."""

    waiting: deque[QueuedFrame] = field(default_factory=deque)
    out: dict[tuple[int, int], QueuedFrame] = field(default_factory=dict)
    received: "OrderedDict[int, SequenceRanges]" = field(default_factory=OrderedDict)
    messages: int = 0
    bytes: int = 0
    empty_logged: bool = False
    """whether the log says that an empty message cannot go to a legacy PE"""


@dataclass(slots=True)
class QueueLimits:
    """Limits of the whole queue."""

    messages: int = 10**7
    bytes: int = 4 * 10**9
    memory_bytes: int = 256 * 2**20
    """of bodies"""
    stream_messages: int = 10**7
    frames: int = 10**6
    """each takes about 330 bytes of memory besides its body, also on the disk"""


class MessageQueue:
    """The queues of all streams over one journal, or over memory alone.

    Args:
        limits: of all streams together.
        journal: read at once; None to keep everything in memory.
    """

    def __init__(self, limits: QueueLimits, journal: Journal | None) -> None:
        self.limits, self._storage, self.trace = limits, FrameStorage(journal), QueueTrace()
        self.streams: dict[str, StreamQueue] = {}
        self.messages = self.bytes = self._frame_count = self._memory = 0
        self._session, self._next = random.SystemRandom().getrandbits(62), 0
        for c_name, frame in self._storage.recover():
            stream = self.streams.setdefault(c_name, StreamQueue())
            stream.received.setdefault(frame.header.session, SequenceRanges()).add(
                frame.header.first, frame.header.count
            )
            self._add_counts(stream, frame)

    def length(self, c_name: str) -> int:
        """Return the messages of a stream that are not done."""
        stream = self.streams.get(c_name)
        return stream.messages if stream is not None else 0

    def lengths(self) -> dict[str, int]:
        """Return the messages that are not done, by stream."""
        return {name: stream.messages for name, stream in self.streams.items()}

    def free_space(self) -> tuple[int, int]:
        """Return (messages, bytes) that are still accepted, also if each message comes in a frame of its own."""
        limits = self.limits
        memory = limits.bytes if self._storage.has_disk else min(limits.bytes, limits.memory_bytes)
        messages = min(limits.messages - self.messages, limits.frames - self._frame_count)
        return max(0, messages), max(0, memory - self.bytes)

    def add(self, c_name: str, head: bytes, body: Buffer, *, limited: bool = True) -> bool:
        """Add a frame.

        Args:
            c_name: name of the stream.
            head: encoded header.
            body: body of the frame.
            limited: whether the limits apply.

        Returns:
            False when the frame was added before.

        Raises:
            RefusedError: a part of it was added before, or the queue is full.
            OSError: the journal cannot be written.
        """
        header = decode_header(head)
        if c_name not in self.streams and len(self.streams) >= MAX_STREAMS:
            self.streams = {name: stream for name, stream in self.streams.items() if stream.messages}
            if len(self.streams) >= MAX_STREAMS:
                raise RefusedError(f"messages of {MAX_STREAMS} streams are waiting")
        stream = self.streams.setdefault(c_name, StreamQueue())
        received = stream.received.setdefault(header.session, SequenceRanges())
        while len(stream.received) > MAX_SESSIONS:
            stream.received.popitem(last=False)
        received.advance_low_watermark(header.low_watermark)
        whole = (header.first, header.first + header.count)
        missing = received.missing(*whole)
        if not missing:
            return False
        if missing != [whole]:
            raise RefusedError(f"a part of messages {whole[0]} to {whole[1] - 1} came before, in another frame")
        if limited:
            self._check_limits(stream, header)
        in_memory = self._memory + header.size <= self.limits.memory_bytes
        frame = self._storage.store(c_name, header, head, body, in_memory=in_memory)
        if frame.location is not None:
            self._storage.compact(self._frames())
        received.add(header.first, header.count)
        self._add_counts(stream, frame)
        return True

    def take(self, c_name: str) -> QueuedFrame | None:
        """Return the oldest waiting frame, which is out until `done` or `put_back`; None when none waits."""
        frame = self.peek(c_name)
        if frame is not None:
            stream = self.streams[c_name]
            stream.out[frame.key] = stream.waiting.popleft()
        return frame

    def peek(self, c_name: str) -> QueuedFrame | None:
        """Return the oldest waiting frame; None when none waits.

        A frame that was added twice while the first is out replaces the first.
        """
        stream = self.streams.get(c_name)
        if stream is None:
            return None
        while stream.waiting and (first := stream.out.get(stream.waiting[0].key)) is not None:
            stream.out[first.key] = stream.waiting.popleft()
            self._subtract_counts(stream, first)
            self._storage.remove_duplicate(first)
        return stream.waiting[0] if stream.waiting else None

    def data(self, frame: QueuedFrame) -> bytes:
        """Return header and body of a frame; raises OSError when the journal cannot be read."""
        return self._storage.data(frame)

    def add_message(self, c_name: str, message: Buffer, *, limited: bool = True) -> None:
        """Add a message of the legacy protocol; raises RefusedError when the queue is full."""
        self._add_own(c_name, [message], MAX_BODY_BYTES, limited=limited)

    def take_message(self, c_name: str) -> tuple[QueuedFrame, bytes] | None:
        """Return the oldest message that is not empty, for a legacy PE, with its frame; a batch is split first.

        The frame is out until `done` or `put_back`.
        """
        while (oldest := self.peek_message(c_name)) is not None and oldest.header.count > 1:
            self.split(c_name, 1)
        frame = self.take(c_name) if oldest is not None else None
        if frame is None:
            return None
        try:
            return frame, bytes(self._batch(frame)[0])
        except OSError:  # of the journal
            self.put_back(c_name, frame.key)
            raise

    def peek_message(self, c_name: str) -> QueuedFrame | None:
        """Return the oldest waiting frame that has a message for a legacy PE: one that is not empty.

        Empty messages before it, which wait for a PE of ours, wait behind it from now on. None when there is no other.
        """
        while (oldest := self.peek(c_name)) is not None and oldest.is_empty:
            stream = self.streams[c_name]
            index = next((at for at, frame in enumerate(stream.waiting) if not frame.is_empty), None)
            if index is None:
                if not stream.empty_logged:
                    logger.warning("an empty message of %s waits for a PE of ours: legacy PEs cannot get it", c_name)
                stream.empty_logged = True
                return None
            frame = stream.waiting[index]
            del stream.waiting[index]
            stream.waiting.appendleft(frame)
        return oldest

    def split(self, c_name: str, max_messages: int, max_bytes: int = MAX_BODY_BYTES) -> None:
        """Split the oldest frame into several, which wait in its position.

        Args:
            c_name: name of the stream.
            max_messages: most messages of each frame.
            max_bytes: longest body of each frame, unless one message is longer.

        Raises:
            OSError: the journal cannot be written; the frame waits as before.
        """
        oldest = self.peek(c_name)
        if oldest is None:
            return
        batch, waiting = self._batch(oldest), self.streams[c_name].waiting
        max_messages = min(max_messages, max(1, max_bytes // max(1, batch.message_bytes or 1)))
        waiting.popleft()
        at, before = 0, len(waiting)
        try:
            while at < len(batch):
                part = [batch[index] for index in range(at, min(at + max_messages, len(batch)))]
                at += self._add_own(c_name, part, max_bytes, limited=False)  # they are in the queue already
        except OSError:
            while len(waiting) > before:
                self._remove(c_name, self.streams[c_name], waiting.pop())
            waiting.appendleft(oldest)
            raise
        waiting.rotate(len(waiting) - before)
        self._remove(c_name, self.streams[c_name], oldest)

    def done(self, c_name: str, key: tuple[int, int]) -> None:
        """Remove a frame that was acknowledged; `key` as of QueuedFrame."""
        stream = self.streams.get(c_name)
        frame = stream.out.pop(key, None) if stream is not None else None
        if stream is not None and frame is not None:
            self._remove(c_name, stream, frame)

    def put_back(self, c_name: str, key: tuple[int, int]) -> None:
        """Let a frame that was not acknowledged wait again, as the oldest."""
        stream = self.streams.get(c_name)
        frame = stream.out.pop(key, None) if stream is not None else None
        if stream is not None and frame is not None:
            stream.waiting.appendleft(frame)

    def purge(self, c_name: str) -> int:
        """Delete the messages of a stream; return how many there were."""
        stream = self.streams.pop(c_name, None)
        if stream is None:
            return 0
        messages = stream.messages
        for frame in [*stream.waiting, *stream.out.values()]:
            self._remove(c_name, stream, frame)
        return messages

    def _add_own(self, c_name: str, messages: Sequence[Buffer], max_bytes: int, *, limited: bool) -> int:
        """Add as many of the messages as fit into one frame of this queue's own session; return how many."""
        head, *parts = encode_frame(messages, self._session, self._next, 0, max_bytes=max_bytes).buffers
        count = decode_header(head).count
        self._next += count
        self.add(c_name, bytes(head), b"".join(parts), limited=limited)
        return count

    def _batch(self, frame: QueuedFrame) -> Batch:
        return Frame(frame.header, memoryview(self.data(frame))[HEADER_BYTES:]).batch()

    def _check_limits(self, stream: StreamQueue, header: FrameHeader) -> None:
        free, size = self.free_space()
        if (
            not free
            or header.count > self.limits.messages - self.messages
            or header.size > size
            or stream.messages + header.count > self.limits.stream_messages
        ):
            raise RefusedError(f"the queue is full: {self.messages} messages, {self.bytes} bytes")

    def _add_counts(self, stream: StreamQueue, frame: QueuedFrame) -> None:
        stream.waiting.append(frame)
        stream.messages += frame.header.count
        stream.bytes += frame.header.size
        self.messages += frame.header.count
        self.bytes += frame.header.size
        self._frame_count += 1
        self._memory += frame.header.size if frame.data is not None else 0

    def _remove(self, c_name: str, stream: StreamQueue, frame: QueuedFrame) -> None:
        """Remove a frame from the counters and from the journal."""
        self._subtract_counts(stream, frame)
        self._storage.remove(c_name, frame)

    def _subtract_counts(self, stream: StreamQueue, frame: QueuedFrame) -> None:
        stream.messages -= frame.header.count
        stream.bytes -= frame.header.size
        self.messages -= frame.header.count
        self.bytes -= frame.header.size
        self._frame_count -= 1
        self._memory -= frame.header.size if frame.data is not None else 0

    def _frames(self) -> Iterator[tuple[str, QueuedFrame]]:
        for c_name, stream in self.streams.items():
            for frame in chain(stream.waiting, stream.out.values()):
                yield c_name, frame
