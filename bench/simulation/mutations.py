"""Mutations: deliberate mistakes in the two-counter search or its environment, each of which must fail a criterion."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import BACKLOG_GREW, Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.search.parameters import SearchParameters
from bench.search.problem import SearchProblem, Strategy
from bench.search.two_counter import TwoCounter
from bench.simulation.acceptance import Criterion, engine_criteria, scenario_criteria, summarise
from bench.simulation.cases import SCENARIOS
from bench.simulation.driver import Case, StrategyFactory, run_search
from bench.simulation.engines import ENGINE_CASES, EngineCase

MUTATED: StrategyFactory = TwoCounter
"""The strategy that the mutations are mistakes in."""
BACKLOG_LIMIT, LAST_ROWS = 1000, 30


class Mutation(Struct, frozen=True):
    """A strategy or a change of the case with a mistake, and the cases in which it must show."""

    name: str
    strategy: StrategyFactory
    cases: tuple[Case | EngineCase, ...]
    mutate: Callable[[Case], Case] = lambda case: case


def failed_criteria(mutation: Mutation, seeds: range) -> list[Criterion]:
    """Run the searches of a mutation, and return the criteria that fail."""
    criteria: list[Criterion] = []
    for case in mutation.cases:
        drawn = [(case if isinstance(case, Case) else case.draw_case(seed), seed) for seed in seeds]
        summary = summarise([run_search(mutation.mutate(each), seed, mutation.strategy) for each, seed in drawn])
        criteria += scenario_criteria(summary) if isinstance(case, Case) else engine_criteria(summary, case)
    return [criterion for criterion in criteria if not criterion.passed]


class _Misjudged(Struct, frozen=True):
    """A search that receives other verdicts than those of the judge."""

    search: Strategy
    change: Callable[[Measurement, Verdict], Verdict]

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial of the search."""
        return self.search.next_trial()

    def after(self, measurement: Measurement, verdict: Verdict) -> "_Misjudged":
        """Return the search with one more trial and the changed verdict."""
        return replace(self, search=self.search.after(measurement, self.change(measurement, verdict)))

    def result(self) -> Result:
        """Return the result of the search."""
        return self.search.result()


def _flip_verdicts(problem: SearchProblem) -> Strategy:
    return _Misjudged(TwoCounter(problem), _flip)


def _flip(_: Measurement, verdict: Verdict) -> Verdict:
    return Verdict("sustained") if verdict.word == "overloaded" else Verdict("overloaded", BACKLOG_GREW, 0.3)


def _limit_backlog(problem: SearchProblem) -> Strategy:
    return _Misjudged(TwoCounter(problem), _judge_with_limit)


def _judge_with_limit(measurement: Measurement, verdict: Verdict) -> Verdict:
    """Return an overload if more than BACKLOG_LIMIT messages are in flight, as in the OpenMessaging Benchmark."""
    rows = zip(measurement.series.offered, measurement.series.processed, strict=True)
    backlogs = [offered - processed for offered, processed in rows if offered <= measurement.offered]
    if min(backlogs[-LAST_ROWS:]) <= BACKLOG_LIMIT:
        return Verdict("sustained")
    return Verdict("overloaded", BACKLOG_GREW, max(0.1, verdict.loss))


def _believe_first(problem: SearchProblem) -> Strategy:
    return TwoCounter(problem, SearchParameters(inflation=0.3))


def _ignore_age(problem: SearchProblem) -> Strategy:
    return TwoCounter(replace(problem, cold=False))


_SIMPLE, _BATCHED, _COLLAPSING = SCENARIOS[0], SCENARIOS[2], SCENARIOS[5]
_SHORT = tuple(case for case in ENGINE_CASES if case.name in ("continuous, 25 s", "batch 1 s, counters, 75 s"))
_COLD = tuple(case for case in ENGINE_CASES if case.name.startswith("JIT 120 s, ") and case.budget < 100)
MUTATIONS = (
    Mutation("the verdict is flipped", _flip_verdicts, (_SIMPLE,)),
    Mutation(
        "the drain is dropped",
        TwoCounter,
        (_SIMPLE, _COLLAPSING),
        lambda case: replace(case, drains=False, budget=300.0),
    ),
    Mutation(
        "an absolute backlog limit of 1,000", _limit_backlog, (_SIMPLE,), lambda case: replace(case, budget=300.0)
    ),
    Mutation("the interval is too narrow", _believe_first, (_SIMPLE, _BATCHED, *_SHORT)),
    Mutation("a cold system is taken for a warm one", _ignore_age, _COLD),
)
