"""Runs a search strategy on a simulated system as the harness runs it on a real one: plan, trial, verdict, until the answer."""

from collections.abc import Callable

from msgspec import Struct

from bench.analysis.verdict import Rules, judge
from bench.config.scenario import Search, Timing
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.search.problem import SearchProblem, Strategy
from bench.simulation.capacity import Traits
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.units import Rate, Seconds, Share

MAX_TRIALS = 1000
Maker = Callable[[SearchProblem], Strategy]


class Case(Struct, frozen=True):
    """A simulated system and what a search is asked of it.

    `generator_known` is the share of the generator's ceiling that a calibration read; `hint` is a neighbour's estimate, as a share
    of the truth.
    """

    name: str
    traits: Traits
    lowest: float = 1.0
    highest: float = 1e6
    budget: float = 3000.0
    precision: float = 0.10
    faults: Faults = Faults()
    generator_known: float | None = None
    hint: float | None = None
    drains: bool = True
    timing: Timing = Timing()

    def question(self) -> SearchProblem:
        """What the search is told."""
        lowest, highest = Rate(self.lowest), Rate(self.highest)
        search = Search(precision=Share(self.precision), budget=Seconds(self.budget), lowest=lowest, highest=highest)
        return SearchProblem(
            Cell("simulated", "fluid", 100, 0.0), search, self.timing, self.traits.batch_interval,
            bound_hz=None,
            hint_hz=None if self.hint is None else self.hint * self.traits.truth,
            generator_hz=None if self.generator_known is None else self.generator_known * self.traits.generator,
        )  # fmt: skip


class Outcome(Struct, frozen=True):
    """What became of one search; `seconds` are those of the simulated system, restarts included."""

    case: str
    seed: int
    truth: float
    result: Result
    seconds: float
    budget: float
    ended: bool
    """the strategy ended by itself"""

    @property
    def error(self) -> float | None:
        """Of the estimate, as a share of the truth."""
        return None if self.result.estimate_hz is None else self.result.estimate_hz / self.truth - 1

    @property
    def covered(self) -> bool:
        """Whether the truth lies in the interval, whose missing end is open; no interval covers nothing."""
        low, high = self.result.low_hz, self.result.high_hz
        return (low is not None or high is not None) and (low or 0.0) <= self.truth <= (high or float("inf"))


def outcome_of(case: Case, seed: int, maker: Maker) -> Outcome:
    """Search for the ceiling of one run of a system; the same seed gives the same outcome."""
    question, rules = case.question(), Rules(precision=case.precision)
    system, search = Fluid(case.traits, case.faults, seed, drains=case.drains), maker(question)
    drain, ended = float(question.timing.drain), False
    for _ in range(MAX_TRIALS):
        planned = search.next_trial()
        if planned is None:
            ended = True
            break
        seen = system.trial(planned, drain)
        search = search.after(seen, judge(seen, rules))
        if not (seen.drained and seen.lost == 0):
            system.restart()
    return Outcome(case.name, seed, case.traits.truth, search.result(), system.seconds, case.budget, ended)
