"""The start of what outlives a cell (servers, sessions, load generators), before the first cell."""

from collections.abc import Callable, Iterable
from functools import partial

from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.runner.cell_plan import CellPlan
from bench.system.memory import use_free_memory
from bench.system.side_by_side import run_side_by_side

LARGE_BYTES = 100_000
"""Of messages: where they are this large, using new memory is a part of their cost."""


def prepare_services(plans: Iterable[CellPlan], env: RunEnvironment) -> None:
    """Start what the plugins of these cells keep between cells, side by side; return when all of it is ready.

    Before messages are large, the free memory of this machine is used once (see `bench.system.memory`).

    What cannot be started is logged here, and raised by the first cell that needs it.

    Args:
        plans: Of the cells that will be measured, in their order; the first of each system counts.
        env: Keeps what is started.
    """
    tasks: dict[str, Callable[[], object]] = {}
    supported = [plan for plan in plans if plan.unsupported_reason is None]
    for plan in supported:
        for name, task in _tasks(plan, env):
            tasks.setdefault(f"preparing {name}", task)
    if any(plan.cell.message_bytes >= LARGE_BYTES for plan in supported):
        tasks["using memory"] = use_free_memory
    run_side_by_side(tasks)


def _tasks(plan: CellPlan, env: RunEnvironment) -> Iterable[tuple[str, Callable[[], object]]]:
    cell, settings = plan.cell, plan.scenario.settings
    if plan.load_generator.prepare is not None:
        yield "load generator", partial(plan.load_generator.prepare, env, plan.workers)
    if plan.source.prepare is not None:
        yield cell.source, partial(plan.source.prepare, registry.settings_of_source(cell.source, settings), cell, env)
    if plan.framework.prepare is not None:
        chosen = registry.settings_of_framework(cell.framework, settings)
        yield cell.system, partial(plan.framework.prepare, chosen, cell, env)
