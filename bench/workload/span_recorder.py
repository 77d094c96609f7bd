"""Recording of spans: what a thread does, one activity after the other."""

import time
from collections.abc import Iterable

from bench.model.trace import Activity, MessageEnd, MessageKind, Span, TraceEvents

SLOT_S = 0.005
"""Seconds within which the parts of an activity become one span."""
IDLE_INTERVAL_S = 0.5
"""Seconds between two reports of a thread that has nothing to do."""
MAX_SPANS = 20_000
"""That wait to be taken; later ones are left out. The same holds for ends of messages."""
MIN_WAIT_S = 0.0001
"""A shorter wait for another worker is a part of reading: it would be a span of its own, and ends a slot."""


class SpanRecorder:
    """The activities of one thread, without gaps: each lap is what it did since the lap before.

    Laps of the same activity within a slot become one span, as long as all of them: a worker gives a few hundred spans
    a second, however short its batches are. Only their order within a slot is lost, which the sums and the critical
    participation of a worker do not depend on. *Waiting* for another worker ends a slot: it begins and ends exactly
    where it did, because paths enter a worker where its wait ends.

    Args:
        worker: name, unlike that of any other worker of the trial.
        operator: the part of the framework's program that it executes.
        ahead_s: seconds by which the clock of the harness's machine is ahead of this machine's.
        slot_s: seconds of a slot; 0 for a span for each lap.
    """

    def __init__(self, worker: str, operator: str, *, ahead_s: float = 0.0, slot_s: float = SLOT_S) -> None:
        self._worker, self._operator, self._ahead_s, self._slot_s = worker, operator, ahead_s, slot_s
        self._spans: list[Span] = []
        self._ends: list[MessageEnd] = []
        self._free_until: float | None = None
        self._slot: dict[Activity, tuple[float, int]] = {}
        self._begin = self._at = time.monotonic()
        self._cpu_s: float | None = None

    def lap(self, activity: Activity, messages: int = 0, at: float | None = None) -> None:
        """Record that the thread did this since the lap before.

        Args:
            activity: that has ended.
            messages: of the source that it was about.
            at: CLOCK_MONOTONIC seconds at which it ended; now when left out.
        """
        now, self._cpu_s = time.monotonic() if at is None else at, None
        if now <= self._at:
            return
        if activity == "waiting":
            if now >= self._at + MIN_WAIT_S:
                self._add_wait(now)
                return
            activity = "source-read"
        elif activity == "idle(source)":
            self._free_until = now
        seconds, count = self._slot.get(activity, (0.0, 0))
        self._slot[activity] = seconds + now - self._at, count + messages
        self._at = now
        if now >= self._begin + self._slot_s:
            self._end_slot()

    def add_sent(self, kind: MessageKind, channel: str, number: int, at: float, *, messages: int = 0) -> None:
        """Record that this worker sent something to another one, which records its receipt.

        Args:
            kind: of the message.
            channel: of both ends.
            number: of the message within its channel.
            at: CLOCK_MONOTONIC seconds.
            messages: of the source in it.
        """
        self._add_end(MessageEnd(self._worker, kind, channel, number, self._to_ns(at), True, messages))  # noqa: FBT003  a field

    def add_received(self, kind: MessageKind, channel: str, number: int, at: float) -> None:
        """Record a receipt, if this worker waited or idled until then: into other work it began nothing.

        Args:
            kind: of the message.
            channel: of both ends.
            number: of the message within its channel.
            at: CLOCK_MONOTONIC seconds; where a wait ended, what its lap was given.
        """
        if at == self._free_until:
            self._add_end(MessageEnd(self._worker, kind, channel, number, self._to_ns(at), False))  # noqa: FBT003  a field

    def begin_wait(self) -> None:
        """Note that what begins now waits for messages, and takes CPU time while it does not wait."""
        self._cpu_s = time.thread_time()

    def end_wait(self, at: float | None = None) -> None:
        """Record what has happened since `begin_wait`: reading for as long as it took CPU time, then waiting.

        Without a `begin_wait` since the last lap, the time belongs to the next lap.

        Args:
            at: CLOCK_MONOTONIC seconds at which it ended; now when left out.
        """
        if self._cpu_s is None:
            return
        now = time.monotonic() if at is None else at
        read_s, self._cpu_s = time.thread_time() - self._cpu_s, None
        self.lap("source-read", at=min(now, self._at + read_s))
        self.lap("idle(source)", at=now)

    def take_idle(self) -> TraceEvents | None:
        """Return the spans of a thread that waits and has no messages to report, at most every IDLE_INTERVAL_S."""
        self.end_wait()
        self.begin_wait()
        if not self._spans or self._spans[0].begin > (self._at + self._ahead_s - IDLE_INTERVAL_S) * 1e9:
            return None
        return self.take()

    def take(self) -> TraceEvents | None:
        """Return the spans of the slots that have ended, and the ends of messages, once; None without any span."""
        if not self._spans:
            return None
        events = TraceEvents(self._spans, ends=self._ends)
        self._spans, self._ends = [], []
        return events

    def _end_slot(self) -> None:
        at = self._begin
        for activity, (seconds, messages) in self._slot.items():
            self._add(activity, at, at + seconds, messages)
            at += seconds
        self._slot, self._begin = {}, self._at

    def _add_wait(self, until: float) -> None:
        self._end_slot()
        self._add("waiting", self._at, until, 0)
        self._begin = self._at = self._free_until = until

    def _add_end(self, end: MessageEnd) -> None:
        if len(self._ends) < MAX_SPANS:
            self._ends.append(end)

    def _to_ns(self, at: float) -> int:
        return round((at + self._ahead_s) * 1e9)

    def _add(self, activity: Activity, begin: float, end: float, messages: int) -> None:
        """Add a span; one that goes on with the activity of the last span becomes a part of it."""
        last = self._spans[-1] if self._spans else None
        first_ns, last_ns = self._to_ns(begin), self._to_ns(end)
        if last is not None and last.activity == activity and self._slot_s > 0:
            first_ns, messages = last.begin, last.messages + messages
            self._spans.pop()
        if len(self._spans) < MAX_SPANS:
            self._spans.append(Span(self._worker, activity, first_ns, last_ns, self._operator, messages))


class NoRecorder:
    """The recorder of a thread that is not traced: it does nothing."""

    def lap(self, activity: Activity, messages: int = 0, at: float | None = None) -> None:
        """Do nothing."""

    def add_sent(self, kind: MessageKind, channel: str, number: int, at: float, *, messages: int = 0) -> None:
        """Do nothing."""

    def add_received(self, kind: MessageKind, channel: str, number: int, at: float) -> None:
        """Do nothing."""

    def begin_wait(self) -> None:
        """Do nothing."""

    def end_wait(self, at: float | None = None) -> None:
        """Do nothing."""

    def take_idle(self) -> TraceEvents | None:
        """Return None."""
        return None

    def take(self) -> TraceEvents | None:
        """Return None."""
        return None


def join_events(parts: Iterable[TraceEvents | None]) -> TraceEvents | None:
    """Return the events of all parts; None if there are none."""
    known = [part for part in parts if part]
    if len(known) < 2:
        return known[0] if known else None
    return TraceEvents(
        [span for part in known for span in part.spans],
        [message for part in known for message in part.messages],
        [sample for part in known for sample in part.samples],
        [end for part in known for end in part.ends],
    )
