"""Values derived from results and measurements: bounds, shares of bounds, cores in use."""

from bench.analysis import bounds
from bench.model.cell import Cell
from bench.model.measurement import Bound, Measurement, Result
from bench.plugins.placement import place
from reports.data.run_data import CellData, RunData


def count_cores(run_data: RunData, framework: str) -> int | None:
    """Return the cores of the host that a framework runs on, less those of the load; None if unknown."""
    record, site = run_data.record, run_data.record.site
    of_machine = record.facts.get("cores")
    here = of_machine - (record.scenario.load.cores or 0) if isinstance(of_machine, int) else 0
    return max(0, place(framework, "", site, here).cores) or None


def count_usable_cores(run_data: RunData, framework: str) -> int | None:
    """Return the number of cores that a framework can use, which its settings may limit; None if it is unknown."""
    cores, settings = count_cores(run_data, framework), run_data.record.scenario.settings.get(framework, {})
    named = [int(settings[name]) for name in ("cores", "processes", "pes") if isinstance(settings.get(name), int)]
    return min([*named, cores]) if cores is not None else None


def cpu_bound(run_data: RunData, framework: str, cost: float) -> float | None:
    """Return the CPU bound in messages/s: cores / CPU cost (s); None if it is unknown or messages cost nothing."""
    cores = count_cores(run_data, framework)
    return bounds.cpu_bound(Cell("", "", 0, cost), cores) if cores is not None else None


def network_bound(run_data: RunData, size: float) -> float | None:
    """Return the network bound in messages/s: bandwidth (bytes/s) / message size (bytes).

    None where no system's messages cross a network, or where several hosts send them: then it is a soft bound.
    """
    site = run_data.record.site
    systems = [system.partition("/") for system in run_data.systems] if site.load is None else []
    links = [place(framework, source, site, 1).link for framework, _, source in systems]
    return max((float(link) / size for link in links if link is not None), default=None)


def find_bound(run_data: RunData, cell_data: CellData) -> Bound | None:
    """Return the hard bound of a cell's result, else the lowest known hard bound of the cell; None if there is none."""
    cell, result = cell_data.cell, cell_data.result
    if result is not None and result.bound_hz is not None:
        return Bound("network" if result.bound == "network" else "cpu", result.bound_hz)
    site = run_data.record.site
    link = place(cell.framework, cell.source, site, 1).link if site.load is None else None  # with load hosts it is soft
    rates = {
        "cpu": cpu_bound(run_data, cell.framework, cell.cpu_seconds),
        "network": float(link) / cell.message_bytes if link is not None else None,
    }
    known = [Bound(name, hz) for name, hz in rates.items() if hz is not None]
    return min(known, key=lambda bound: bound.hz, default=None)


def compute_bound_share(run_data: RunData, cell_data: CellData) -> float | None:
    """Return the rate of a cell as a share of its bound; None if either is unknown."""
    rate, bound = get_shown_rate(cell_data.result), find_bound(run_data, cell_data)
    return rate / bound.hz if rate is not None and bound is not None else None


def rate_of(result: Result | None) -> float | None:
    """Return the rate of a result (messages/s): its estimate, or the sustained rate of a lower bound; else None."""
    if result is None or result.status == "failed":
        return None
    first, second = result.estimate_hz, result.low_hz
    if result.status == "lower-bound":
        first, second = second, first
    return first if first is not None else second


def get_shown_rate(result: Result | None) -> float | None:
    """Return the rate that stands for a result (messages/s): the upper end of an upper bound, else `rate_of`."""
    return result.high_hz if result is not None and result.status == "upper-bound" else rate_of(result)


def compute_useful_cpu_share(cell_data: CellData) -> float | None:
    """Return the messages' own CPU cost as a share of the CPU that framework and source used, in the deciding trial.

    Returns:
        rate x CPU cost / cores in use. None if messages cost nothing, or if the CPU use is unknown.
    """
    measurement, cores = _deciding_measurement(cell_data), compute_used_cores(cell_data)
    if measurement is None or not cores or cell_data.cell.cpu_seconds == 0:
        return None
    return measurement.planned.rate * cell_data.cell.cpu_seconds / cores


def compute_used_cores(cell_data: CellData) -> float | None:
    """Return the cores that framework and source used in the deciding trial; None if it was not sustained."""
    measurement = _deciding_measurement(cell_data)
    if measurement is None or not measurement.cpu.get("framework") or "source" not in measurement.cpu:
        return None
    return (measurement.cpu["framework"] + measurement.cpu["source"]) / get_cpu_seconds(measurement)


def get_cpu_seconds(measurement: Measurement) -> float:
    """Return the seconds over which the resources of a trial were measured."""
    return measurement.cpu.get("seconds") or measurement.planned.window


def _deciding_measurement(cell_data: CellData) -> Measurement | None:
    deciding = cell_data.deciding
    return deciding.measurement if deciding is not None and deciding.verdict.word == "sustained" else None
