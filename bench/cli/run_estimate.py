"""The estimate of `bench plan`: what a scenario will take before anything starts.

Cells, time, disk, and what is missing.
"""

from pathlib import Path

from msgspec import Struct

from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.model.cell import Cell
from bench.plugins.site_preflight import missing_endpoints, missing_for
from bench.runner.cell_plan import CellPlan, plan_cell
from bench.search.durations import TrialDurations
from bench.search.map_budget import FIRST_SHARE, MIN_CELL_S, latency_seconds, search_seconds
from bench.system import host_info

USUAL_TRIALS = 5
USUAL_HZ = 10_000.0
START_S = 8.0
"""About what a server, a session or a load generator takes to start; paid once for a system."""
FOLLOWING_START_S = 5.0
"""Likewise a deployment and its first workers, once for each policy."""
MAX_RETAINED_HZ_BYTES = 200e6
"""Bytes/s that a source on this machine is taken to retain while a trial lasts."""


class RunEstimate(Struct, frozen=True):
    """An estimate of a run: seconds and bytes are usual figures, not bounds.

    `longest` is the bound that the budgets set.
    """

    cells: tuple[Cell, ...]
    unsupported: dict[str, str]
    """by the cell's name: why its plugins cannot do it"""
    seconds: float
    longest: float
    disk: float
    free: int
    missing: list[str]
    """what the user must correct, or will be downloaded, a sentence each"""
    passes: str = ""
    """how a total is spent; empty without one"""


def estimate_run(scenario: Scenario, site: Site, results: Path, cache: Path) -> RunEstimate:
    """Return the estimate of a scenario whose run folder will lie in `results`.

    Raises:
        UsageError: a plugin is not installed, or does not take its settings.
    """
    cells = scenario.cells()
    plans = [plan_cell(cell, scenario, site, host_info.cores(), cache) for cell in cells]
    able = [one for one in plans if one.unsupported_reason is None]
    starts = START_S * (1 + len(scenario.systems))
    disk, free = max((_disk(one) for one in able), default=0.0), host_info.free_bytes(results)
    plugins = {("frameworks", one.cell.framework) for one in able} | {("sources", one.cell.source) for one in able}
    missing = [*missing_for(plugins, site, cache), *map(str, missing_endpoints(site))]
    if disk > free:
        missing.append(f"{disk / 1e9:.1f} GB of disk are needed at {results}, {free / 1e9:.1f} GB are free")
    seconds = starts + sum(_usual_seconds(one) for one in able)
    drain, of_latency = float(scenario.timing.drain), latency_seconds(scenario)
    seconds += len(able) * of_latency
    longest_latency = of_latency + len(scenario.latency.at) * drain
    longest = starts + len(able) * (float(scenario.search.budget) + drain + longest_latency)
    total, passes = scenario.search.total, ""
    if scenario.elasticity is not None:
        each = scenario.elasticity.seconds + FOLLOWING_START_S
        runs = len(able) * len(scenario.elasticity.policies)
        seconds, longest = starts + runs * each, starts + runs * (each + drain)
        passes = f"one of {each:.0f} s for each of {len(scenario.elasticity.policies)} policies"
    elif total is not None:
        last = max((_longest_trial(one, USUAL_HZ) for one in able), default=0.0) + drain
        of_search = search_seconds(scenario, len(cells)) or 0.0
        seconds = max(float(total), MIN_CELL_S * len(able))
        longest, passes = seconds + max(last, longest_latency), _describe_passes(of_search, len(able))
    return RunEstimate(
        cells,
        {one.cell.name: one.unsupported_reason for one in plans if one.unsupported_reason is not None},
        seconds,
        longest,
        disk,
        free,
        missing,
        passes,
    )


def _describe_passes(total: float, cells: int) -> str:
    first = max(MIN_CELL_S, FIRST_SHARE * total / max(1, cells))
    rest = total - first * cells
    more = (
        f"then {rest:.0f} s for cells of open points and for wide intervals" if rest > 0 else "no time for another one"
    )
    return f"the first visits every cell for about {first:.0f} s, {more}"


def _usual_seconds(plan: CellPlan) -> float:
    rate = min(USUAL_HZ, MAX_RETAINED_HZ_BYTES / plan.cell.message_bytes, _cpu_hz(plan) or USUAL_HZ)
    return min(float(plan.scenario.search.budget), USUAL_TRIALS * _longest_trial(plan, rate)) + 2


def _disk(plan: CellPlan) -> float:
    """Return bytes that a source which writes to disk holds during one trial."""
    rate = _cpu_hz(plan) or float("inf")
    return (
        plan.source.disk_copies
        * min(rate * plan.cell.message_bytes, MAX_RETAINED_HZ_BYTES)
        * _longest_trial(plan, USUAL_HZ)
    )


def _longest_trial(plan: CellPlan, rate: float) -> float:
    return TrialDurations(
        plan.scenario.timing, float(plan.scenario.search.precision), plan.batch_interval
    ).estimate_seconds(rate)


def _cpu_hz(plan: CellPlan) -> float | None:
    return next((bound.hz for bound in plan.bounds if bound.name == "cpu"), None)
