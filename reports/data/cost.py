"""COST: with how many cores a system outdoes one plain process, at each point of the map.

McSherry, Isard and Murray, "Scalability! But at what COST?" (HotOS 2015): the configuration that outdoes a single
thread. The plain process is that of a run in which plain processes, without any framework, had one core; it reads the
same source, or else it is the fastest one at the point. Rates are compared as in bench.analysis.comparison: all
decisions of a table together are wrong in at most 5 % of tables.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.comparison import LEVEL, Decision, compare
from bench.analysis.intervals import log_rate
from bench.model.measurement import Result
from bench.plugins import registry
from bench.system.machine_speed import speed_ratios
from bench.units import seconds_text
from reports.data.derived import count_usable_cores, rate_of
from reports.data.labels import format_claim
from reports.data.run_data import RunData

Point = tuple[float, int]
"""CPU cost in seconds and message size in bytes: the order of the table."""
OPEN = "open"


class CostRow(Struct, frozen=True):
    """One point of the map."""

    size: str
    cost: str
    plain: str
    """the plain process and its rate"""
    cores: tuple[str, ...]
    """with which each system of the table outdoes it: "2", "at most 2", "more than 2", or "open"; empty where nothing
    was measured"""


class CostTable(Struct, frozen=True):
    """The cores with which systems outdo one plain process."""

    systems: tuple[str, ...]
    rows: tuple[CostRow, ...]
    summary: str


class _Group(Struct, frozen=True):
    """The results of one run whose systems had so many cores."""

    cores: int
    results: tuple[Result, ...]
    speeds: tuple[float, ...]
    """of the machine, relative to the run of the plain process"""


def make_cost_table(runs: Sequence[RunData]) -> CostTable | None:
    """Return the table of one run, or of several with different numbers of cores.

    Returns:
        None where in no run a plain process had one core, or no other system was measured at its points.
    """
    base = next((run_data for run_data in runs if _plain_results(run_data)), None)
    if base is None:
        return None
    plain = _plain_results(base)
    decisions = _decide(plain, [group for run_data in runs for group in _group_results(run_data, base)])
    systems = tuple(dict.fromkeys(system for system, _ in decisions))
    points = sorted({point for _, point in decisions})
    rows = tuple(_make_row(point, plain, systems, decisions) for point in points)
    return CostTable(systems, rows, _summarize(systems, rows)) if rows else None


def describe_cost(words: Mapping[int, Decision]) -> str:
    """Return the cores with which a system outdoes the plain process, by the decision for each number of cores."""
    if not words:
        return ""
    most = min((cores for cores, word in words.items() if word == "faster"), default=None)
    slower = [cores for cores, word in words.items() if word == "slower" and (most is None or cores < most)]
    least = max(slower, default=0) + 1
    if most is None:
        return f"more than {least - 1}" if slower else OPEN
    if least == most:
        return str(most)
    return f"{least} to {most}" if slower else f"at most {most}"


def _plain_results(run_data: RunData) -> list[Result]:
    """Return the rates of plain processes that had one core."""
    return [
        result
        for result in _list_results(run_data)
        if _is_plain(result.framework) and _cores(run_data, result) == 1 and log_rate(result) is not None
    ]


def _group_results(run_data: RunData, base: RunData) -> Iterator[_Group]:
    """Yield the results of all systems with a framework, those with the same number of cores together."""
    speeds = () if run_data is base else tuple(speed_ratios(base.speed, run_data.speed).values())
    by_cores: dict[int, list[Result]] = {}
    for result in _list_results(run_data):
        cores = _cores(run_data, result)
        if cores and result.status != "unsupported" and not _is_plain(result.framework):
            by_cores.setdefault(cores, []).append(result)
    for cores, results in sorted(by_cores.items()):
        yield _Group(cores, tuple(results), speeds)


def _decide(plain: Sequence[Result], groups: Sequence[_Group]) -> dict[tuple[str, Point], dict[int, Decision]]:
    """Return, by system and point, the decision for each number of cores."""
    decisions: dict[tuple[str, Point], dict[int, Decision]] = {}
    for group in groups:
        pairs = [(_find_plain(plain, result), result) for result in group.results]
        first = [_named_as(one, result) for one, result in pairs if one is not None]
        second = [result for one, result in pairs if one is not None]
        for each in compare(first, second, LEVEL / len(groups), group.speeds):
            words = decisions.setdefault((each.cell.system, (each.cell.cpu_seconds, each.cell.message_bytes)), {})
            if words.get(group.cores) not in ("faster", "slower"):  # of two runs with as many cores, the certain one
                words[group.cores] = each.word
    return decisions


def _find_plain(plain: Sequence[Result], result: Result) -> Result | None:
    """Return the plain process that a result is compared with; None where none was measured at its point."""
    same = [one for one in plain if _point(one) == _point(result) and one.sizes == result.sizes]
    return max(same, key=lambda one: (one.source == result.source, rate_of(one) or 0.0), default=None)


def _named_as(plain: Result, result: Result) -> Result:
    """Return the plain process's result as one of the other system's cell, so that the two are compared."""
    return replace(plain, system=result.system, framework=result.framework, source=result.source)


def _make_row(
    point: Point,
    plain: Sequence[Result],
    systems: Sequence[str],
    decisions: Mapping[tuple[str, Point], Mapping[int, Decision]],
) -> CostRow:
    here = [one for one in plain if _point(one) == point]
    cost, _ = point
    return CostRow(
        here[0].cell.size_text,
        seconds_text(cost),
        ", ".join(f"{one.system} {format_claim(one)}" for one in here),
        tuple(describe_cost(decisions.get((system, point), {})) for system in systems),
    )


def _summarize(systems: Sequence[str], rows: Sequence[CostRow]) -> str:
    """Return how many cores each system needs, and at how many points."""
    parts = []
    for place, system in enumerate(systems):
        counts = Counter(row.cores[place] for row in rows if row.cores[place])
        cores = ", ".join(f"{text} at {count} point{'s' * (count > 1)}" for text, count in sorted(counts.items()))
        parts.append(f"{system} {cores}")
    return f"Cores with which each system outdoes one plain process: {'; '.join(parts)}."


def _list_results(run_data: RunData) -> list[Result]:
    return [cell_data.result for cell_data in run_data.cells if cell_data.result is not None]


def _cores(run_data: RunData, result: Result) -> int | None:
    return count_usable_cores(run_data, result.framework)


def _point(result: Result) -> Point:
    return result.cpu_seconds, result.message_bytes


def _is_plain(framework: str) -> bool:
    """Return whether a framework is none; one that is not installed counts as one."""
    known = framework in registry.names("frameworks")
    return known and registry.framework_plugin(framework).capabilities.plain
