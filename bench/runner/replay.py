"""The search of a cell from its journal: `--resume` goes on with it, `bench verify` computes the result again."""

from collections.abc import Iterable

from msgspec.structs import replace

from bench.analysis.verdict import judge
from bench.errors import ImpossibleMeasurementError
from bench.model.measurement import Measurement, Result
from bench.model.search_inputs import SearchInputs
from bench.plugins import registry
from bench.runner.cell_plan import CellPlan
from bench.runner.outcome import check_sanity, finish_result, without_rate
from bench.search.problem import SearchProblem, Strategy
from bench.units import Seconds


def replay_trials(
    plan: CellPlan, inputs: SearchInputs, trials: Iterable[Measurement], *, several_senders: bool
) -> Strategy:
    """Return the search of a cell that knows its trials, each checked and judged again.

    Args:
        plan: of the cell.
        inputs: of its search.
        trials: in the order of the journal, with their series. Latency trials are checked and not searched with.
        several_senders: whether several hosts send.

    Raises:
        ImpossibleMeasurementError: a trial breaks conservation or a hard bound.
    """
    search = registry.strategy(plan.scenario.search.strategy, search_problem(plan, inputs))
    for measurement in trials:
        check_sanity(measurement, plan, several_senders=several_senders)
        if measurement.planned.purpose != "latency":
            search = search.after(measurement, judge(measurement, plan.rules))
    return search


def recompute_result(
    plan: CellPlan, inputs: SearchInputs, trials: Iterable[Measurement], *, several_senders: bool
) -> Result:
    """Return the result that a cell's trials give; the arguments are those of replay_trials."""
    try:
        return finish_result(replay_trials(plan, inputs, trials, several_senders=several_senders).result(), plan)
    except ImpossibleMeasurementError as problem:
        return without_rate(plan.cell, "failed", str(problem))


def search_problem(plan: CellPlan, inputs: SearchInputs) -> SearchProblem:
    """Return the problem that a cell's search is given."""
    bound = plan.hard_bound
    return SearchProblem(
        plan.cell,
        replace(plan.scenario.search, budget=Seconds(inputs.budget_s)),
        plan.scenario.timing,
        batch_interval=plan.batch_interval,
        bound_hz=bound.hz if bound is not None else None,
        bound=bound.name if bound is not None else "cpu",
        hint_hz=inputs.hint_hz,
        generator_hz=inputs.generator_hz,
        objectives=plan.scenario.objectives,
    )
