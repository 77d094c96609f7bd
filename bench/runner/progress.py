"""Progress events of a run, for the terminal and the live page."""

import time
from collections.abc import Callable

from msgspec import Struct

from bench.analysis.verdict import Verdict
from bench.elasticity.live_run import LiveRecord
from bench.elasticity.policy_run import Decision
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.units import seconds_text


class Note(Struct, frozen=True):
    """Something takes its time, such as a download."""

    text: str


class CellStarted(Struct, frozen=True):
    """The harness begins with a visit to a cell."""

    cell: Cell
    number: int
    """of the cell, from 1, in the order of the run"""
    total: int
    """cells of the run"""
    visit: int = 1
    """of the cell, from 1"""
    done: int = 0
    """cells that have a result"""
    left_s: float | None = None
    """seconds that are left of the scenario's total; None without a total"""
    total_s: float | None = None
    workers: int = 1
    """of the load generator"""
    policy: str = ""
    """of kind elasticity: the policy that begins, and `number` and `total` count policies"""


class TrialStarted(Struct, frozen=True):
    """A trial or a warm-up begins."""

    planned: PlannedTrial


class TrialProgress(Struct, frozen=True):
    """The counters of a trial under way, a few times a second; messages since its first due time."""

    planned: PlannedTrial
    phase: str
    elapsed: float
    """seconds since the first message was due"""
    offered: int
    sent: int
    processed: int


class TrialFinished(Struct, frozen=True):
    """A trial or a warm-up is over."""

    measurement: Measurement
    verdict: Verdict


class CellFinished(Struct, frozen=True):
    """A cell has its result, or a new one."""

    result: Result
    visit: int = 1
    """of the cell, from 1"""
    earlier: Result | None = None
    """the result that it replaces"""


class IntervalEnded(Struct, frozen=True):
    """A policy has decided at the end of an interval."""

    decision: Decision


class PolicyEnded(Struct, frozen=True):
    """A policy has followed its load until the end, or failed."""

    record: LiveRecord
    measurement: Measurement | None


ProgressEvent = (
    Note | CellStarted | TrialStarted | TrialProgress | TrialFinished | CellFinished | IntervalEnded | PolicyEnded
)
Notify = Callable[[ProgressEvent], None]


def notify_all(*listeners: Notify) -> Notify:
    """Return a listener that passes every event on to all of these, in order."""

    def notify(event: ProgressEvent) -> None:
        for listener in listeners:
            listener(event)

    return notify


class TimeUse:
    """A listener for the share of the time since it was made that is windows of trials, warm-ups not counted."""

    def __init__(self) -> None:
        self._began, self._windows = time.monotonic(), 0.0

    def __call__(self, event: ProgressEvent) -> None:
        """Take in an event."""
        warm_up = isinstance(event, TrialFinished) and event.measurement.planned.purpose == "warm-up"
        if isinstance(event, TrialFinished | PolicyEnded) and event.measurement is not None and not warm_up:
            self._windows += event.measurement.window_s

    def __str__(self) -> str:
        spent = time.monotonic() - self._began
        return f"{seconds_text(round(spent))}, of which {self._windows / spent:.0%} measured"


class RateWindow:
    """Rates of the counters over the last moments of a trial.

    Args:
        seconds: the span over which rates are taken.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._recent: list[TrialProgress] = []

    def clear(self) -> None:
        """Forget everything; a new trial begins."""
        self._recent = []

    def add(self, progress: TrialProgress) -> None:
        """Take in the counters of a moment."""
        kept = [one for one in self._recent if one.elapsed >= progress.elapsed - self._seconds]
        self._recent = [*kept, progress]

    @property
    def last(self) -> TrialProgress | None:
        """Return the newest counters; None before there are any."""
        return self._recent[-1] if self._recent else None

    def rate(self, counter: str) -> float | None:
        """Return messages/s of the counter of that name; None before two moments are known."""
        if len(self._recent) < 2:
            return None
        first, last = self._recent[0], self._recent[-1]
        span = last.elapsed - first.elapsed
        return max(0.0, (getattr(last, counter) - getattr(first, counter)) / span) if span > 0 else None
