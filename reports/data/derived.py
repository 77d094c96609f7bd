"""What theory allows a cell: the lowest of the bounds that are known for it, and how much of it was reached."""

from typing import Literal

from msgspec import Struct

from bench.analysis import bounds
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.plugins.placement import place
from reports.data.run_data import CellData, RunData

Kind = Literal["cpu", "network"]


class Bound(Struct, frozen=True):
    """At most this many messages/s, and why."""

    kind: Kind
    hertz: float


def cores_of(run_data: RunData, framework: str) -> int | None:
    """The cores that a framework had; None when the run does not say."""
    record, site = run_data.record, run_data.record.site
    of_machine = record.facts.get("cores")
    here = of_machine - (record.scenario.load.cores or 0) if isinstance(of_machine, int) else 0
    return max(0, place(framework, "", site, here).cores) or None


def given_cores(run_data: RunData, framework: str) -> int | None:
    """The cores that a framework can use, where its settings name fewer than it had; None when the run does not say."""
    cores, settings = cores_of(run_data, framework), run_data.record.scenario.settings.get(framework, {})
    named = [int(settings[name]) for name in ("cores", "processes", "pes") if isinstance(settings.get(name), int)]
    return min([*named, cores]) if cores is not None else None


def cpu_bound(run_data: RunData, framework: str, cost: float) -> float | None:
    """Messages/s at which the messages' own cost needs all cores of a framework."""
    cores = cores_of(run_data, framework)
    return bounds.cpu_bound(Cell("", "", 0, cost), cores) if cores is not None else None


def network_bound(run_data: RunData, size: float) -> float | None:
    """Messages/s at which the messages alone fill the site's link; None within one machine."""
    bandwidth = run_data.record.site.bandwidth
    return float(bandwidth) / size if bandwidth is not None else None


def bound_of(run_data: RunData, known: CellData) -> Bound | None:
    """The lowest known bound of a cell: the one that its result was held against, where it has one."""
    cell, result = known.cell, known.result
    if result is not None and result.bound_hz is not None:
        return Bound("network" if result.bound == "network" else "cpu", result.bound_hz)
    found: list[Bound] = []
    link = place(cell.framework, cell.source, run_data.record.site, 1).link
    network = float(link) / cell.message_bytes if link is not None else None
    for kind, hertz in (("cpu", cpu_bound(run_data, cell.framework, cell.cpu_seconds)), ("network", network)):
        if hertz is not None:
            found.append(Bound("cpu" if kind == "cpu" else "network", hertz))
    return min(found, key=lambda bound: bound.hertz) if found else None


def efficiency_of(run_data: RunData, known: CellData) -> float | None:
    """The measured rate as a share of the bound; None where either is unknown."""
    rate, bound = rate_of(known.result), bound_of(run_data, known)
    return rate / bound.hertz if rate is not None and bound is not None else None


def rate_of(result: Result | None) -> float | None:
    """The rate that a result may claim: its estimate, of an "at least" what was sustained; None when it has neither."""
    if result is None:
        return None
    first, second = result.estimate_hz, result.low_hz
    if result.status == "lower-bound":
        first, second = second, first
    return first if first is not None else second


def useful_share(known: CellData) -> float | None:
    """Which share of the CPU that framework and source used went into the messages' own cost, at the confirmed rate.

    None where messages cost nothing, or where the CPU was not accounted. Both are of the trial that the result rests on.
    """
    seen = known.deciding.seen if known.deciding is not None and known.deciding.verdict.word == "sustained" else None
    if seen is None or known.cell.cpu_seconds == 0:
        return None
    cores = used_cores(known)
    return seen.planned.rate * known.cell.cpu_seconds / cores if cores else None


def used_cores(known: CellData) -> float | None:
    """Cores that framework and source used in the sustained trial that the result rests on; None where that is unknown."""
    seen = known.deciding.seen if known.deciding is not None and known.deciding.verdict.word == "sustained" else None
    if seen is None or not seen.cpu.get("framework") or "source" not in seen.cpu:
        return None
    return (seen.cpu["framework"] + seen.cpu.get("source", 0.0)) / (seen.cpu.get("seconds") or seen.planned.window)
