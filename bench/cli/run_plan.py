"""What a scenario will take before anything starts: cells, time, disk, and what is missing."""

from pathlib import Path

from msgspec import Struct

from bench.analysis import bounds
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import HarnessError
from bench.model.cell import Cell
from bench.runner import deployment
from bench.search.durations import TrialDurations
from bench.services import preflight
from bench.system import host_info

USUAL_TRIALS = 5
USUAL_RATE = 10_000.0
START_SECONDS = 8.0
"""About what a server, a session or a load's process takes to start; paid once for a system."""
BUSY_BANDWIDTH = 200e6
"""Bytes/s that a source on this machine is taken to hold on to while a trial lasts, at the most."""


class Plan(Struct, frozen=True):
    """An estimate: seconds and bytes are usual figures, not bounds; `longest` is the bound that the budgets set."""

    cells: tuple[Cell, ...]
    unsupported: dict[str, str]
    """by the cell's name: why its rooms cannot do it"""
    seconds: float
    longest: float
    disk: float
    free: int
    missing: list[str]
    """what a person must put right, or will be downloaded, a sentence each"""


def plan_of(scenario: Scenario, site: Site, results: Path, cache: Path) -> Plan:
    """The plan of a scenario whose run folder will lie in `results`."""
    cells = scenario.cells()
    refused = {cell.name: why for cell in cells if (why := deployment.unsupported_reason(cell, scenario, site))}
    able = [cell for cell in cells if cell.name not in refused]
    starts = START_SECONDS * (1 + len(scenario.systems))
    seconds = starts + sum(_usual_seconds(cell, scenario, site) for cell in able)
    longest = starts + len(able) * (float(scenario.search.budget) + float(scenario.timing.drain))
    disk = max((_disk(cell, scenario, site) for cell in able), default=0.0)
    free = host_info.free_bytes(results)
    missing = preflight.missing({part for cell in able for part in (cell.framework, cell.source)}, site, cache)
    if disk > free:
        missing.append(f"{disk / 1e9:.1f} GB of disk are needed at {results}, {free / 1e9:.1f} GB are free")
    return Plan(cells, refused, seconds, longest, disk, free, missing)


def _usual_seconds(cell: Cell, scenario: Scenario, site: Site) -> float:
    durations, bound = _durations(cell, scenario), _cpu_bound(cell, site)
    rate = min(USUAL_RATE, BUSY_BANDWIDTH / cell.message_bytes, bound or USUAL_RATE)
    return min(float(scenario.search.budget), USUAL_TRIALS * durations.estimate_seconds(rate)) + 2


def _disk(cell: Cell, scenario: Scenario, site: Site) -> float:
    """Bytes that a source which writes to disk holds during one trial."""
    copies = {"kafka": 1, "files": 1, "pulsar": 2}.get(cell.source, 0)
    rate = _cpu_bound(cell, site) or float("inf")
    return (
        copies
        * min(rate * cell.message_bytes, BUSY_BANDWIDTH)
        * _durations(cell, scenario).estimate_seconds(USUAL_RATE)
    )


def _durations(cell: Cell, scenario: Scenario) -> TrialDurations:
    try:
        interval = deployment.batch_interval(cell, scenario)
    except HarnessError:
        interval = 0.0
    return TrialDurations(scenario.timing, float(scenario.search.precision), interval)


def _cpu_bound(cell: Cell, site: Site) -> float | None:
    return bounds.cpu_bound(cell, site.cores_of(cell.framework, host_info.cores()))
