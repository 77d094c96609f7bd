"""The validation of one strategy on all simulated systems: independent tasks, and the report of their outcomes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from bench.simulation.acceptance import (
    CaseSummary,
    Criterion,
    adversary_criteria,
    engine_criteria,
    map_criteria,
    pooled_criteria,
    scenario_criteria,
    summarise,
)
from bench.simulation.cases import ADVERSARIES, SCENARIOS
from bench.simulation.driver import Case, SearchOutcome, StrategyFactory, run_search
from bench.simulation.engines import ENGINE_CASES
from bench.simulation.maps import MAPS, MapOutcome, run_map
from bench.simulation.mutations import MUTATIONS, failed_criteria

Kind = Literal["scenario", "repeat", "engine", "map", "adversary", "mutation"]
KINDS: tuple[Kind, ...] = ("scenario", "repeat", "engine", "map", "adversary", "mutation")
Answers = list[SearchOutcome] | list[MapOutcome] | list[Criterion]
FORMAT = 2


class Seeds(Struct, frozen=True):
    """The number of runs of each kind of case, and the first seed."""

    scenario: int = 80
    engine: int = 80
    map: int = 40
    adversary: int = 40
    mutation: int = 40
    first: int = 0

    def count(self, kind: Kind) -> int:
        """Return the number of runs of each case of a kind."""
        counts = {
            "engine": self.engine,
            "map": self.map,
            "adversary": self.adversary,
            "mutation": self.mutation,
            "repeat": 2,
        }
        return counts.get(kind, self.scenario)


class Task(Struct, frozen=True):
    """Runs of the case number `index` of a kind: `count` seeds from `first` on.

    Plain data, so that another process can run it.
    """

    kind: Kind
    index: int
    first: int
    count: int


class CaseReport(Struct, frozen=True):
    """The report of one case: its criteria, and its summary where its searches have one."""

    kind: Kind
    name: str
    criteria: list[Criterion]
    summary: CaseSummary | None = None
    errors: tuple[float, ...] = ()
    """relative errors of the estimates"""


class ValidationReport(Struct, frozen=True):
    """The report on all cases of one strategy."""

    format: int
    strategy: str
    seeds: Seeds
    cases: list[CaseReport]

    @property
    def criteria(self) -> list[Criterion]:
        """The criteria of all cases."""
        return [criterion for case in self.cases for criterion in case.criteria]


def case_names() -> list[str]:
    """Return the names of all cases, in the order of the report."""
    return [name for kind in KINDS if kind != "repeat" for name in _names_of(kind)]


def list_tasks(seeds: Seeds, *, only: str = "", max_runs: int = 20, mutations: bool = True) -> list[Task]:
    """Return the tasks of a validation.

    Args:
        seeds: The number of runs of each kind of case.
        only: Text that the name of a case must contain, in any case.
        max_runs: Largest number of runs of one task.
        mutations: False for a strategy other than bench.simulation.mutations.MUTATED.
    """
    tasks = []
    for kind in KINDS:
        if kind == "mutation" and not mutations:
            continue
        undivided = kind in ("repeat", "mutation")
        for index, name in enumerate(_names_of(kind)):
            if only.casefold() not in name.casefold():
                continue
            first, last = seeds.first, seeds.first + seeds.count(kind)
            step = last - first if undivided else max_runs
            tasks += [Task(kind, index, start, min(step, last - start)) for start in range(first, last, step)]
    return tasks


def run_task(task: Task, strategy: StrategyFactory) -> Answers:
    """Run a task; return the outcomes of its searches or maps, or the failed criteria of a mutation.

    The answer depends on nothing but the arguments.
    """
    seeds = range(task.first, task.first + task.count)
    if task.kind == "mutation":
        return failed_criteria(MUTATIONS[task.index], seeds)
    if task.kind == "map":
        return [run_map(MAPS[task.index], seed, strategy) for seed in seeds]
    if task.kind == "repeat":
        return [run_search(SCENARIOS[task.index], task.first, strategy) for _ in range(2)]
    return [run_search(_case(task, seed), seed, strategy) for seed in seeds]


def build_report(strategy: str, seeds: Seeds, answers: Iterable[tuple[Task, Answers]]) -> ValidationReport:
    """Return the report on the answers of all tasks; the order of the answers does not matter."""
    by_case: dict[tuple[Kind, int], dict[int, Answers]] = {}
    for task, answer in answers:
        by_case.setdefault((task.kind, task.index), {})[task.first] = answer
    cases = []
    for kind, index in sorted(by_case, key=lambda case: (KINDS.index(case[0]), case[1])):
        pieces = by_case[kind, index]
        cases.append(_report_case(kind, index, [each for first in sorted(pieces) for each in pieces[first]]))
    return ValidationReport(FORMAT, strategy, seeds, [*cases, *_report_budgets(cases)])


def _case(task: Task, seed: int) -> Case:
    if task.kind == "engine":
        return ENGINE_CASES[task.index].draw_case(seed)
    return ADVERSARIES[task.index].case if task.kind == "adversary" else SCENARIOS[task.index]


def _names_of(kind: Kind) -> list[str]:
    if kind == "adversary":
        return [adversary.case.name for adversary in ADVERSARIES]
    named: dict[str, Sequence[object]] = {"engine": ENGINE_CASES, "map": MAPS, "mutation": MUTATIONS}
    return [str(case.name) for case in named.get(kind, SCENARIOS)]  # type: ignore[attr-defined]  # all have a name


def _report_case(kind: Kind, index: int, answers: "Sequence[SearchOutcome | MapOutcome | Criterion]") -> CaseReport:
    name = _names_of(kind)[index]
    outcomes = [answer for answer in answers if isinstance(answer, SearchOutcome)]
    if kind == "mutation":
        failed = Criterion(name, "criteria failed by the mutation", len(answers), 1, at_least=True)
        return CaseReport(kind, name, [failed])
    if kind == "map":
        maps = [answer for answer in answers if isinstance(answer, MapOutcome)]
        return CaseReport(kind, name, map_criteria(name, maps))
    if kind == "repeat":
        different = sum(outcome != outcomes[0] for outcome in outcomes)
        return CaseReport(kind, name, [Criterion(name, "same seed, different result", different, 0)])
    summary = summarise(outcomes)
    errors = tuple(outcome.error for outcome in outcomes if outcome.error is not None)
    return CaseReport(kind, name, _criteria(kind, index, summary, outcomes), summary, errors)


def _criteria(kind: Kind, index: int, summary: CaseSummary, outcomes: Sequence[SearchOutcome]) -> list[Criterion]:
    if kind == "adversary":
        return adversary_criteria(ADVERSARIES[index], outcomes)
    return engine_criteria(summary, ENGINE_CASES[index]) if kind == "engine" else scenario_criteria(summary)


def _report_budgets(cases: Sequence[CaseReport]) -> Iterator[CaseReport]:
    """Yield the report on all engines together for each budget."""
    by_budget: dict[float, list[CaseSummary]] = {}
    for case in cases:
        if case.kind == "engine" and case.summary is not None:
            by_budget.setdefault(case.summary.budget, []).append(case.summary)
    for budget, summaries in sorted(by_budget.items()):
        criteria = pooled_criteria(budget, summaries)
        yield CaseReport("engine", criteria[0].case, criteria)
