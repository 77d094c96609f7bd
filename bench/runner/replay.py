"""The search of a cell from its journal: `--resume` goes on with it, `bench verify` computes the result again."""

import math
from collections.abc import Iterable

from bench.analysis.verdict import Verdict, judge
from bench.errors import ImpossibleMeasurementError
from bench.model.measurement import Measurement, Result
from bench.model.search_inputs import SearchInputs
from bench.plugins import registry
from bench.runner.cell_plan import CellPlan
from bench.runner.outcome import check_sanity, finish_result, without_rate
from bench.search.problem import SearchProblem, Strategy, make_problem

JudgedTrial = tuple[Measurement, Verdict]


def judge_trials(
    plan: CellPlan, trials: Iterable[Measurement], *, ignored: int, limit: float = math.inf
) -> list[JudgedTrial]:
    """Return the trials that the search of a cell is given, each checked and judged again.

    Args:
        plan: of the cell.
        trials: in the order of the journal, with their series. Latency trials are checked and not searched with.
        ignored: invalid trials among so many first ones are left out.
        limit: number of trials that the search is given; later ones are not looked at.

    Raises:
        ImpossibleMeasurementError: a trial breaks conservation or a hard bound.
    """
    given: list[JudgedTrial] = []
    for place, measurement in enumerate(trials):
        is_latency = measurement.planned.purpose == "latency"
        if len(given) >= limit and not is_latency:
            continue
        check_sanity(measurement, plan)
        verdict = judge(measurement, plan.rules)
        if not is_latency and (verdict.word != "invalid" or place >= ignored):
            given.append((measurement, verdict))
    return given


def resume_search(plan: CellPlan, inputs: SearchInputs, known: Iterable[JudgedTrial]) -> Strategy:
    """Return the search of a cell after trials that were judged."""
    search = registry.make_strategy(plan.scenario.search.strategy, search_problem(plan, inputs))
    for measurement, verdict in known:
        search = search.after(measurement, verdict)
    return search


def recompute_result(
    plan: CellPlan, inputs: SearchInputs, trials: Iterable[Measurement], *, limit: float = math.inf
) -> Result:
    """Return the result that a cell's trials give; the arguments are those of judge_trials."""
    try:
        known = judge_trials(plan, trials, ignored=inputs.ignored, limit=limit)
        search = resume_search(plan, inputs, known)
        return finish_result(search.result(), plan, (measurement for measurement, _ in known))
    except ImpossibleMeasurementError as problem:
        return without_rate(plan.cell, "failed", str(problem))


def search_problem(plan: CellPlan, inputs: SearchInputs) -> SearchProblem:
    """Return the problem that a cell's search is given."""
    return make_problem(
        plan.cell,
        plan.scenario,
        inputs,
        batch_interval=plan.batch_interval,
        bound=plan.hard_bound,
        cores=plan.placement.cores,
    )
