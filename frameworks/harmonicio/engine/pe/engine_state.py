"""The state of a PE's engine, without I/O: received messages, deduplication, credit and counters."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from frameworks.harmonicio.engine.pe.batch_merging import take_mergeable
from frameworks.harmonicio.engine.pe.credit import CreditWindow
from frameworks.harmonicio.engine.pe.processed_ranges import ProcessedRanges
from frameworks.harmonicio.engine.wire.frame import Batch, Frame

if TYPE_CHECKING:  # the state holds connections and calls nothing of them
    from frameworks.harmonicio.engine.pe.inbound import InboundConnection

RawMessage = tuple[bytes, Callable[[], None] | None]
"""A message of the legacy protocol, and what is called once it is processed."""


class EngineState:
    """Everything that an engine holds between two events; each method is one event or one question."""

    def __init__(self, now: float) -> None:
        self.window = CreditWindow()
        self.inbox: deque[tuple[InboundConnection, Frame]] = deque()
        self.raw_messages: deque[RawMessage] = deque()
        self._processed = ProcessedRanges()
        self.draining = self.drain_announced = False
        self.last_work = now
        """monotonic time at which a message was processed last"""
        self.working = False
        """whether the engine is processing: what it took from the inbox is not in `waiting` any more"""
        self.duplicates = 0

    @property
    def waiting(self) -> int:
        """Return the messages that were received and are not processed yet; safe from any thread."""
        return sum(frame.header.count for _, frame in list(self.inbox)) + len(self.raw_messages)

    @property
    def is_empty(self) -> bool:
        """Return whether everything that was received is processed."""
        return not self.inbox and not self.raw_messages

    def idle_since(self) -> float | None:
        """Return the monotonic time since which there is nothing to do; None if there is. Safe from any thread."""
        since = self.last_work  # first: work that ends meanwhile makes it later
        return None if self.working or self.waiting else since

    def next_frames(self, max_messages: int) -> "tuple[InboundConnection, list[Frame]]":
        """Remove the oldest frame and what can be merged with it; the inbox must not be empty."""
        return take_mergeable(self.inbox, max_messages)

    def new_batches(self, frame: Frame, batch: Batch, *, queued: bool) -> list[Batch]:
        """Return the parts of a frame that were not processed before; they count as processed from now on.

        Args:
            frame: a DATA frame.
            batch: its messages.
            queued: whether it came through the master's queue.
        """
        header = frame.header
        missing = self._processed.missing(header, queued=queued)
        self._processed.add(header, queued=queued)
        self.duplicates += header.count - sum(end - first for first, end in missing)
        return [batch.slice(first - header.first, end - header.first) for first, end in missing]

    def record_work(self, began: float, ended: float, messages: int) -> None:
        """Record that messages were processed between two monotonic times."""
        self.last_work = ended
        self.window.record(ended - began, messages)
