"""Runs of a search strategy on a simulated system, in the harness's loop: plan, trial, verdict."""

import math
from collections.abc import Callable

from msgspec import Struct

from bench.analysis.verdict import Rules, Verdict, judge
from bench.config.scenario import Objectives, Search, Timing
from bench.model.cell import Cell
from bench.model.measurement import Measurement, Result
from bench.search.problem import SearchProblem, Strategy
from bench.simulation.capacity import Traits
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.simulation.micro_batches import MicroBatches
from bench.units import Rate, Seconds, Share

MAX_TRIALS = 1000
StrategyFactory = Callable[[SearchProblem], Strategy]
JudgedTrials = list[tuple[Measurement, Verdict]]


class Case(Struct, frozen=True):
    """A simulated system and the parameters of a search on it; rates in messages/s, times in seconds.

    `generator_known` is the calibrated limit of the generator as a share of the true one (None: not calibrated);
    `hint` is a neighbour's estimate and `bound` the hard bound, as shares of the truth. Without `drains` the backlog
    of a trial stays for the next one.
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
    bound: float | None = None
    drains: bool = True
    timing: Timing = Timing()
    cold: bool = False
    """whether the search knows that the system may be cold"""
    age: float = 0.0
    """for so long the system was under load before the search"""
    warm_ups: tuple[float, ...] = ()
    """probabilities of the times until full speed that other cells show"""
    noise: tuple[float, ...] = ()
    """probabilities of the noise that other cells show"""
    fixed_share: float | None = None
    """fixed cost of a batch that other cells show, as a share of the interval"""
    cell: Cell = Cell("simulated", "fluid", 100, 0.0)
    objectives: Objectives = Objectives()

    @property
    def truth(self) -> float:
        """The right answer in messages/s."""
        return self.traits.growing_truth if self.objectives.batches == "grow" else self.traits.truth

    @property
    def problem(self) -> SearchProblem:
        """The search problem that a strategy receives."""
        lowest, highest = Rate(self.lowest), Rate(self.highest)
        search = Search(precision=Share(self.precision), budget=Seconds(self.budget), lowest=lowest, highest=highest)
        return SearchProblem(
            self.cell, search, self.timing, self.traits.batch_interval,
            bound_hz=None if self.bound is None else self.bound * self.traits.truth,
            hint_hz=None if self.hint is None else self.hint * self.traits.truth,
            generator_hz=None if self.generator_known is None else self.generator_known * self.traits.generator,
            noise=self.noise,
            fixed_share=self.fixed_share,
            cold=self.cold,
            warm_ups=self.warm_ups,
            objectives=self.objectives,
        )  # fmt: skip


class SearchOutcome(Struct, frozen=True):
    """The outcome of one search; `seconds` are those of the simulated system, restarts included."""

    case: str
    seed: int
    truth: float
    result: Result
    seconds: float
    budget: float
    ended: bool
    """the strategy ended by itself"""
    longest: float = 0.0
    """seconds of the longest trial, with the restart before it"""
    hinted: bool = False

    @property
    def error(self) -> float | None:
        """The relative error of the estimate; None without one."""
        return None if self.result.estimate_hz is None else self.result.estimate_hz / self.truth - 1

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width in ln(rate); None without both ends."""
        low, high = self.result.low_hz, self.result.high_hz
        return math.log(high / low) / 2 if low and high else None

    @property
    def covered(self) -> bool:
        """True if the interval contains the truth."""
        return contains(self.result, self.truth)


def contains(result: Result, rate: float) -> bool:
    """Return True if the interval contains a rate; a missing end is open, no end at all is no interval."""
    low, high = result.low_hz, result.high_hz
    return (low is not None or high is not None) and (low or 0.0) <= rate <= (high or float("inf"))


def resume_search(case: Case, strategy: StrategyFactory, trials: JudgedTrials) -> Strategy:
    """Return the search of a case after trials that were judged."""
    search = strategy(case.problem)
    for measurement, verdict in trials:
        search = search.after(measurement, verdict)
    return search


def run_search(
    case: Case, seed: int, strategy: StrategyFactory, trials: JudgedTrials | None = None, at_most: float = math.inf
) -> SearchOutcome:
    """Run a search for the capacity of a simulated system.

    Args:
        case: The system and the search problem.
        seed: Seed of the system's random numbers; the same seed gives the same outcome.
        strategy: Factory of the search strategy.
        trials: Earlier trials, which count; it gets the new ones.
        at_most: Seconds of the system after which no trial begins.
    """
    problem, rules = case.problem, Rules(case.objectives, case.precision)
    system: Fluid | MicroBatches = (
        MicroBatches(case.traits, seed, age=case.age)
        if case.traits.reader
        else Fluid(case.traits, case.faults, seed, drains=case.drains, age=case.age)
    )
    trials = [] if trials is None else trials
    search = resume_search(case, strategy, trials)
    spent = sum(measurement.seconds for measurement, _ in trials)
    drain, ended, longest = float(problem.timing.drain), False, 0.0
    last: Measurement | None = None
    for _ in range(MAX_TRIALS):
        planned = search.next_trial() if system.seconds < at_most else None
        if planned is None:
            ended = True
            break
        began = system.seconds
        if last is not None and not last.deployment_reusable:
            system.restart()  # as the harness does: not after the last trial
        measurement = last = system.run_trial(planned, drain, case.budget - spent)
        spent += measurement.seconds
        verdict = judge(measurement, rules)
        search = search.after(measurement, verdict)
        trials.append((measurement, verdict))
        longest = max(longest, system.seconds - began)
    return SearchOutcome(
        case.name, seed, case.truth, search.result(), system.seconds, case.budget, ended, longest,
        hinted=case.hint is not None,
    )  # fmt: skip
