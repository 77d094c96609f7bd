"""What a search is asked for one cell, the trials that it has seen so far, and what it may answer."""

from typing import Protocol

from msgspec import Struct

from bench.analysis.verdict import Verdict
from bench.config.scenario import Objectives, Search, Timing
from bench.model.cell import Cell
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.search.durations import Pace

MODEST_HZ, MODEST_BYTES = 2_000.0, 50e6
"""Messages/s and bytes/s that any machine of today moves."""


class SearchProblem(Struct, frozen=True):
    """Find the highest sustained rate of `cell`; rates in messages/s, times in seconds."""

    cell: Cell
    search: Search
    timing: Timing
    batch_interval: float
    bound_hz: float | None
    hint_hz: float | None
    """where the answer may lie, from cells that are known already"""
    generator_hz: float | None = None
    """the highest rate that the load was seen to reach against a null sink at this message size"""
    bound: str = "cpu"
    """what sets `bound_hz`"""
    objectives: Objectives = Objectives()

    @property
    def pace(self) -> Pace:
        return Pace(self.timing, float(self.search.precision), self.batch_interval)

    @property
    def highest(self) -> float:
        """The highest rate worth a trial: a tenth above what theory allows is known to be overloaded."""
        bound = self.bound_hz * 1.1 if self.bound_hz is not None else float("inf")
        return max(float(self.search.lowest), min(float(self.search.highest), bound))

    @property
    def start(self) -> float:
        """The first rate: the hint; or the scenario's start; or what a modest machine moves, at most a good part of the bound."""
        modest = min(MODEST_HZ, MODEST_BYTES / self.cell.message_bytes, 0.8 * (self.bound_hz or float("inf")))
        wanted = self.hint_hz or self.search.start or modest
        return min(self.highest, max(float(self.search.lowest), wanted))


class Step(Struct, frozen=True):
    """A trial that was made, and its verdict."""

    seen: Measurement
    verdict: Verdict


class Strategy(Protocol):
    """A search as a value: it plans the next trial and takes what was seen. The same steps give the same plan."""

    def next_trial(self) -> PlannedTrial | None:
        """What to try next; None once the answer stands."""

    def after(self, seen: Measurement, verdict: Verdict) -> "Strategy":
        """The search that knows this trial as well."""

    def result(self) -> Result:
        """The answer as it stands; may be asked at any time."""
