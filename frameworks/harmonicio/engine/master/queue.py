"""The master's queue: for each stream the frames that no PE could take, bounded by count and bytes, oldest first.

A frame is in one of three states: it waits, it was handed out (and comes back when nobody answers for it), or it is done and
gone. With a journal, bodies beyond the memory bound are left on the disk and read when their turn comes.
"""

import logging
import random
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from frameworks.harmonicio.engine.errors import Refused
from frameworks.harmonicio.engine.master.journal import Journal, Place
from frameworks.harmonicio.engine.wire.frame import (
    HEADER_BYTES,
    MAX_BODY,
    Batch,
    Buffer,
    Frame,
    Header,
    read_header,
    seal,
)
from frameworks.harmonicio.engine.wire.sequence_ranges import Seen

logger = logging.getLogger(__name__)

MAX_STREAMS, MAX_SESSIONS = 10_000, 4096
_COMPACTED = 4
"""Segments at a time: more than one, so that the journal does not grow faster; not all, so that nobody waits for long."""


@dataclass(slots=True)
class Entry:
    """A frame in the queue; `data` is header and body, None when they are on the disk only."""

    header: Header
    data: bytes | None
    place: Place | None

    @property
    def key(self) -> tuple[int, int]:
        """What an acknowledgement names it by: session and first number."""
        return self.header.session, self.header.first


@dataclass(slots=True)
class Stream:
    """The queue of one stream."""

    waiting: deque[Entry] = field(default_factory=deque)
    out: dict[tuple[int, int], Entry] = field(default_factory=dict)
    seen: "OrderedDict[int, Seen]" = field(default_factory=OrderedDict)
    messages: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Bounds:
    """Of the whole queue."""

    messages: int = 10**7
    bytes: int = 4 * 10**9
    memory_bytes: int = 256 * 2**20
    stream_messages: int = 10**7


class Backlog:
    """All streams' queues over one journal, or over memory alone."""

    def __init__(self, bounds: Bounds, journal: Journal | None) -> None:
        self.bounds, self._journal = bounds, journal
        self.streams: dict[str, Stream] = {}
        self.messages = self.bytes = self._memory = 0
        self._unnoted, self._compacted = False, 0
        self._session, self._next = random.SystemRandom().getrandbits(62), 0
        if journal is not None:
            self._recover(journal)

    def length(self, c_name: str) -> int:
        """Messages of a stream that are not done."""
        stream = self.streams.get(c_name)
        return stream.messages if stream is not None else 0

    def lengths(self) -> dict[str, int]:
        """By stream."""
        return {name: stream.messages for name, stream in self.streams.items()}

    def room(self) -> tuple[int, int]:
        """(messages, bytes) that are still accepted."""
        memory = self.bounds.bytes if self._journal is not None else min(self.bounds.bytes, self.bounds.memory_bytes)
        return max(0, self.bounds.messages - self.messages), max(0, memory - self.bytes)

    def add(self, c_name: str, head: bytes, body: Buffer, *, bounded: bool = True) -> bool:
        """Put a frame in; False when it was there before, raises Refused when a part of it was, or the queue is full."""
        header = read_header(head)
        if c_name not in self.streams and len(self.streams) >= MAX_STREAMS:
            self.streams = {name: stream for name, stream in self.streams.items() if stream.messages}
            if len(self.streams) >= MAX_STREAMS:
                raise Refused(f"messages of {MAX_STREAMS} streams are waiting")
        stream = self.streams.setdefault(c_name, Stream())
        seen = stream.seen.setdefault(header.session, Seen())
        while len(stream.seen) > MAX_SESSIONS:
            stream.seen.popitem(last=False)
        seen.raise_floor(header.floor)
        whole = (header.first, header.first + header.count)
        missing = seen.missing(*whole)
        if not missing:
            return False
        if missing != [whole]:
            raise Refused(f"a part of messages {whole[0]} to {whole[1] - 1} came before, in another frame")
        if bounded:
            self._check_room(stream, header)
        keep = self._memory + header.size <= self.bounds.memory_bytes
        place = None
        if self._journal is not None and (self._journal.durable or not keep):
            place = self._journal.append_frame(c_name, head, body)
            self._compact(self._journal)
        keep |= place is None
        seen.add(header.first, header.count)
        self._count(stream, Entry(header, b"".join((head, body)) if keep else None, place))
        return True

    def take(self, c_name: str) -> Entry | None:
        """The oldest frame that waits; it is out until `done` or `back`."""
        entry = self.peek(c_name)
        if entry is not None:
            stream = self.streams[c_name]
            stream.out[entry.key] = stream.waiting.popleft()
        return entry

    def peek(self, c_name: str) -> Entry | None:
        """The oldest frame that waits; one that came twice, and is out, is so once: the second stands for both."""
        stream = self.streams.get(c_name)
        if stream is None:
            return None
        while stream.waiting and (first := stream.out.get(stream.waiting[0].key)) is not None:
            stream.out[first.key] = stream.waiting.popleft()
            self._uncount(stream, first)
            if self._journal is not None and first.place is not None:
                self._journal.is_done(first.place)
        return stream.waiting[0] if stream.waiting else None

    def data(self, entry: Entry) -> bytes:
        """Header and body of a frame."""
        if entry.data is not None:
            return entry.data
        assert self._journal is not None, "what is not in memory is in the journal"
        assert entry.place is not None
        return self._journal.read(entry.place)

    def add_message(self, c_name: str, message: Buffer, *, bounded: bool = True) -> None:
        """Put a message of the old wire in; raises Refused when the queue is full."""
        self._add_ours(c_name, [message], MAX_BODY, bounded=bounded)

    def take_message(self, c_name: str) -> tuple[Entry, bytes] | None:
        """The oldest message alone, for an old PE; it is out until `done` or `back`. A batch is taken apart first."""
        if (oldest := self.peek(c_name)) is not None and oldest.header.count > 1:
            self.split(c_name, 1)
        entry = self.take(c_name)
        if entry is None:
            return None
        try:
            return entry, bytes(self._batch(entry)[0])
        except OSError:  # of the journal
            self.back(c_name, entry.key)
            raise

    def split(self, c_name: str, most: int, most_bytes: int = MAX_BODY) -> None:
        """Have the oldest frame be several, of so many messages and bytes at most, one message at least; they wait at its place.

        Raises OSError when the journal does not take them: then it waits as it was.
        """
        oldest = self.peek(c_name)
        if oldest is None:
            return
        batch, waiting = self._batch(oldest), self.streams[c_name].waiting
        most = min(most, max(1, most_bytes // max(1, batch.message_bytes or 1)))
        waiting.popleft()
        at, before = 0, len(waiting)
        try:
            while at < len(batch):
                part = [batch[index] for index in range(at, min(at + most, len(batch)))]
                at += self._add_ours(c_name, part, most_bytes, bounded=False)  # they are in the queue already
        except OSError:
            while len(waiting) > before:
                self._forget(c_name, self.streams[c_name], waiting.pop())
            waiting.appendleft(oldest)
            raise
        waiting.rotate(len(waiting) - before)
        self._forget(c_name, self.streams[c_name], oldest)

    def done(self, c_name: str, key: tuple[int, int]) -> None:
        """A frame was acknowledged."""
        stream = self.streams.get(c_name)
        entry = stream.out.pop(key, None) if stream is not None else None
        if stream is not None and entry is not None:
            self._forget(c_name, stream, entry)

    def back(self, c_name: str, key: tuple[int, int]) -> None:
        """A frame was not acknowledged, and waits again."""
        stream = self.streams.get(c_name)
        entry = stream.out.pop(key, None) if stream is not None else None
        if stream is not None and entry is not None:
            stream.waiting.appendleft(entry)

    def purge(self, c_name: str) -> int:
        """Throw a stream's messages away, on somebody's order; how many those were."""
        stream = self.streams.pop(c_name, None)
        if stream is None:
            return 0
        messages = stream.messages
        for entry in [*stream.waiting, *stream.out.values()]:
            self._forget(c_name, stream, entry)
        return messages

    def _add_ours(self, c_name: str, messages: Sequence[Buffer], most_bytes: int, *, bounded: bool) -> int:
        """Put messages in, as many as fit into a frame of this queue's own session; how many those are."""
        head, *parts = seal(messages, self._session, self._next, 0, most_bytes=most_bytes).buffers
        count = read_header(head).count
        self._next += count
        self.add(c_name, bytes(head), b"".join(parts), bounded=bounded)
        return count

    def _batch(self, entry: Entry) -> Batch:
        return Frame(entry.header, memoryview(self.data(entry))[HEADER_BYTES:]).batch()

    def _check_room(self, stream: Stream, header: Header) -> None:
        messages, size = self.room()
        if (
            header.count > messages
            or header.size > size
            or stream.messages + header.count > self.bounds.stream_messages
        ):
            raise Refused(f"the queue is full: {self.messages} messages, {self.bytes} bytes")

    def _count(self, stream: Stream, entry: Entry) -> None:
        stream.waiting.append(entry)
        stream.messages += entry.header.count
        stream.bytes += entry.header.size
        self.messages += entry.header.count
        self.bytes += entry.header.size
        self._memory += entry.header.size if entry.data is not None else 0

    def _forget(self, c_name: str, stream: Stream, entry: Entry) -> None:
        """A frame needs nothing more."""
        self._uncount(stream, entry)
        self._note_done(c_name, entry)

    def _uncount(self, stream: Stream, entry: Entry) -> None:
        stream.messages -= entry.header.count
        stream.bytes -= entry.header.size
        self.messages -= entry.header.count
        self.bytes -= entry.header.size
        self._memory -= entry.header.size if entry.data is not None else 0

    def _note_done(self, c_name: str, entry: Entry) -> None:
        """Have the journal forget a frame; on a full disk only until a restart, but what it took up is free in any case."""
        if self._journal is None or entry.place is None:
            return
        if self._journal.durable:
            try:
                self._journal.append_done(c_name, *entry.key, entry.header.count)
                self._unnoted = False
            except OSError as problem:
                if not self._unnoted:
                    logger.error("what is done from now on may come again after a restart: %s", problem)  # noqa: TRY400
                self._unnoted = True
        self._journal.is_done(entry.place)

    def _compact(self, journal: Journal) -> None:
        """Once for each new segment, move what waits in the oldest ones to the newest, if most of the journal is not needed.

        One message that waits for long would keep all that came after it on the disk.
        """
        if journal.newest == self._compacted or not journal.sparse:
            return
        oldest = journal.oldest(_COMPACTED)
        try:
            for c_name, stream in self.streams.items():
                for entry in chain(stream.waiting, stream.out.values()):
                    if entry.place is not None and entry.place.segment in oldest:
                        entry.place = journal.move(c_name, entry.place)
        except OSError as problem:
            logger.error("the journal cannot be made smaller: %s", problem)  # noqa: TRY400  one line is enough
        self._compacted = journal.newest

    def _recover(self, journal: Journal) -> None:
        """What was in the journal and is not done waits again, in the journal's order; a frame that is there twice counts once."""
        found: dict[tuple[str, int, int], Entry] = {}
        for record in journal.records():
            if record.header is None:
                session, first, _ = record.done
                found.pop((record.c_name, session, first), None)
            else:
                found[record.c_name, record.header.session, record.header.first] = Entry(
                    record.header, None, record.place
                )
        for (c_name, session, first), entry in found.items():
            stream = self.streams.setdefault(c_name, Stream())
            stream.seen.setdefault(session, Seen()).add(first, entry.header.count)
            self._count(stream, entry)
            if entry.place is not None:
                journal.is_waiting(entry.place)
        journal.tidy()
