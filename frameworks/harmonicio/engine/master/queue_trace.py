"""The trace of a master's queue: spans and frames, recorded while somebody asks for them."""

import time

from msgspec import Struct

from frameworks.harmonicio.engine.observer import Transfer

MAX_EVENTS = 100_000
"""That wait to be taken. With so many, recording ends until the next request."""
MIN_WAIT_S = 0.001
"""A shorter time between two activities is no wait: the loop had other things to do."""


class QueueSpan(Struct, frozen=True, array_like=True):
    """An activity of the master, in CLOCK_MONOTONIC seconds."""

    activity: str
    begin: float
    end: float


class QueueEnd(Struct, frozen=True, array_like=True):
    """One end of a frame that the master sent or received."""

    is_sent: bool
    transfer: Transfer
    at: float


class QueueEvents(Struct, frozen=True):
    """The events between two requests; the spans are complete, with the waits between them."""

    spans: list[QueueSpan]
    ends: list[QueueEnd]


class QueueTrace:
    """Spans and frames since the last request; nothing is recorded before the first one."""

    def __init__(self) -> None:
        self.on, self._since = False, 0.0
        """whether anything is recorded: nobody need describe a frame otherwise"""
        self._spans: list[QueueSpan] = []
        self._ends: list[QueueEnd] = []

    def worked(self, activity: str, began: float) -> None:
        """Record what was done from then until now."""
        if self.on:
            self._spans.append(QueueSpan(activity, began, time.monotonic()))
            self._stop_when_full()

    def sent(self, transfer: Transfer) -> None:
        """Record that a frame is being sent."""
        if self.on:
            self._add_end(QueueEnd(True, transfer, time.monotonic()))  # noqa: FBT003  a field

    def received(self, transfer: Transfer, at: float) -> None:
        """Record that a frame was received."""
        if self.on:
            self._add_end(QueueEnd(False, transfer, at))  # noqa: FBT003  a field

    def take(self, now: float) -> QueueEvents:
        """Return what was recorded since the last call, once; from now on everything is recorded."""
        begin = self._since if self.on else now
        events = QueueEvents(_add_waits(self._spans, begin, now), self._ends)
        self.on, self._since, self._spans, self._ends = True, now, [], []
        return events

    def _add_end(self, end: QueueEnd) -> None:
        self._ends.append(end)
        self._stop_when_full()

    def _stop_when_full(self) -> None:
        self.on = len(self._ends) + len(self._spans) < MAX_EVENTS


def _add_waits(spans: list[QueueSpan], begin: float, end: float) -> list[QueueSpan]:
    """Return spans in order of time, with a wait wherever there was nothing to do."""
    complete, at = list[QueueSpan](), begin
    for span in [*sorted(spans, key=lambda one: one.begin), QueueSpan("", end, end)]:
        if span.begin >= at + MIN_WAIT_S:
            complete.append(QueueSpan("waiting", at, span.begin))
        complete.append(span)
        at = max(at, span.end)
    return complete[:-1]
