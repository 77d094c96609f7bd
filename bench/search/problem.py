"""The search problem of one cell, the judged trials that a search receives, and strategies."""

import math
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.config.scenario import Objectives, Scenario, Search, Timing
from bench.model.cell import Cell
from bench.model.measurement import Bound, Measurement, PlannedTrial, Result
from bench.model.search_inputs import SearchInputs
from bench.units import Seconds

MODEST_HZ, MODEST_BYTES = 2_000.0, 50e6
"""Messages/s and bytes/s that any current machine processes."""


class SearchProblem(Struct, frozen=True):
    """The problem of finding the highest sustained rate of `cell`; rates in messages/s, times in seconds."""

    cell: Cell
    search: Search
    timing: Timing
    batch_interval: float
    bound_hz: float | None
    hint_hz: float | None
    """an estimate from neighbouring cells"""
    generator_hz: float | None = None
    """the generator's limit: the highest rate that it reached without a system, at this message size"""
    bound: str = "cpu"
    """the resource that sets `bound_hz`"""
    objectives: Objectives = Objectives()
    fixed_share: float | None = None
    """fixed cost of a batch as a share of the interval, from other cells of the system"""
    noise: tuple[float, ...] = ()
    """probability of each noise of the search's grid, from other cells of the map; empty if there are none"""
    cold: bool = False
    """whether the system is known to need a while until it is at full speed"""
    warm_ups: tuple[float, ...] = ()
    """probability of each time until full speed of the search's grid, from other cells of the system; empty: none"""
    requested_s: float = 0.0
    """seconds on all cores that the requested work on one message takes"""

    @property
    def grows(self) -> bool:
        """True if the scenario asks for the rate of batches that may grow, not of those that keep their interval."""
        return self.batch_interval > 0 and self.objectives.batches == "grow"

    @property
    def highest(self) -> float:
        """The highest rate worth a trial: at most 10 % above the hard bound, where every system is overloaded."""
        bound = self.bound_hz * 1.1 if self.bound_hz is not None else float("inf")
        return max(float(self.search.lowest), min(float(self.search.highest), bound))

    @property
    def start(self) -> float:
        """The first rate: the hint, else the scenario's start, else a modest rate of at most 80 % of the bound."""
        modest = min(MODEST_HZ, MODEST_BYTES / self.cell.message_bytes, 0.8 * (self.bound_hz or float("inf")))
        wanted = self.hint_hz or self.search.start or modest
        return min(self.highest, max(float(self.search.lowest), wanted))


def make_problem(  # noqa: PLR0913  everything that a search is given
    cell: Cell, scenario: Scenario, inputs: SearchInputs, *, batch_interval: float, bound: Bound | None, cores: int
) -> SearchProblem:
    """Return the problem of a cell's search.

    Args:
        cell: The cell.
        scenario: Of the run.
        inputs: That the run has recorded for the cell, or records now.
        batch_interval: Seconds; 0 for a continuous system.
        bound: The lowest hard bound; None if none is known.
        cores: That process messages; 0 where that is not known.
    """
    return SearchProblem(
        cell,
        replace(scenario.search, budget=Seconds(inputs.budget_s)),
        scenario.timing,
        batch_interval=batch_interval,
        bound_hz=bound.hz if bound is not None else None,
        bound=bound.name if bound is not None else "cpu",
        hint_hz=inputs.hint_hz,
        generator_hz=inputs.generator_hz,
        objectives=scenario.objectives,
        fixed_share=inputs.fixed_share,
        noise=inputs.noise,
        cold=inputs.cold,
        warm_ups=inputs.warm_ups,
        requested_s=cell.cpu_seconds / (cores or math.inf),
    )


class Step(Struct, frozen=True):
    """A finished trial and its verdict."""

    measurement: Measurement
    verdict: Verdict
    latency_s: float = 0.0
    """seconds until the first result of a continuous system; 0 where it is not known"""


class Strategy(Protocol):
    """A search as an immutable value that plans trials and receives their measurements.

    The same steps give the same plan, so that a search can be resumed from the journal of its trials.
    """

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial; None when the search is finished."""

    def after(self, measurement: Measurement, verdict: Verdict) -> "Strategy":
        """Return the search with one more judged trial."""

    def result(self) -> Result:
        """Return the result so far; may be called at any time."""


class SearchPlugin(Struct, frozen=True, kw_only=True):
    """A search strategy, as its entry point declares it."""

    make: Callable[[SearchProblem], Strategy]
    """makes a search that has not planned anything yet; importable by name, so that other processes can call it"""
    calibrated: bool = False
    """its intervals contain the truth in 95 of 100 runs, and its bounds are confidence limits; brackets otherwise"""
