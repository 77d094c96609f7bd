"""The state of a running benchmark at this moment, as plain data for its live page."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from bench.analysis.intervals import name_intervals
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.plugins import registry
from bench.runner.live_status import LiveStatus, read_status
from bench.storage.run_folder import read_results, read_run, read_visits
from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import get_shown_rate
from reports.data.labels import MISSING, format_claim, format_count, format_reason, format_result_interval
from reports.figures.palette import INK, PALE, RGB, is_dark
from reports.figures.scale import Scale, make_log_scale

OVERHEAD_FACTOR = 2.0
"""Upper limit of a cell's time as a multiple of the seconds of its trials: deployment and pauses come on top."""


class MapCell(Struct, frozen=True):
    """One cell of the map; colours are CSS, empty if it has none."""

    claim: str
    note: str
    status: str
    visits: int
    background: str
    ink: str
    current: bool


class SystemMap(Struct, frozen=True):
    """The map of one system: a row for each CPU cost, the highest first; None where the scenario has no cell."""

    system: str
    rows: tuple[tuple[str, tuple[MapCell | None, ...]], ...]


class RunSnapshot(Struct, frozen=True):
    """The content of the page."""

    running: bool
    done: int
    of: int
    share: float
    spent: str
    left: str
    activity: str
    trial: str
    figures: tuple[tuple[str, str], ...]
    """name and value: offered, processed, backlog"""
    elapsed: float
    """share of the trial's time"""
    sizes: tuple[str, ...]
    maps: tuple[SystemMap, ...]


def take_snapshot(run: Path, *, running: bool) -> RunSnapshot:
    """Return the state of a run, read from its folder.

    Args:
        run: a run folder.
        running: True if a harness runs it; see is_running.

    Raises:
        UsageError: the folder is no run folder.
    """
    record = read_run(run)
    named = name_intervals(read_results(run), calibrated=registry.is_calibrated(record.scenario.search.strategy))
    results = {result.cell: result for result in named}
    now = read_status(run) if running else None
    cells = record.scenario.cells()
    done = sum(cell in results for cell in cells)
    visits = Counter(visit.cell for visit in read_visits(run))
    spent = _seconds_since(record.started)
    share, left = _measure_progress(now, list(results.values()), spent, done, len(cells))
    planned = now.trial if now is not None else None
    whole = planned.settle + planned.window if planned is not None else 0.0
    return RunSnapshot(
        running, done, len(cells), share,
        spent=seconds_text(round(spent)) if running else "",
        left=left if running else "",
        activity=_describe_activity(now),
        trial="" if planned is None else f"trial {planned.number + 1} ({planned.purpose}) at {rate_text(planned.rate)}",
        figures=_list_figures(now),
        elapsed=min(1.0, now.elapsed / whole) if now is not None and whole else 0.0,
        sizes=tuple(size_text(size) for size in sorted({cell.message_bytes for cell in cells})),
        maps=_make_maps(cells, results, visits, now.cell if now is not None else None),
    )  # fmt: skip


def _seconds_since(started: str) -> float:
    begin = datetime.strptime(started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - begin).total_seconds())


def _measure_progress(
    now: LiveStatus | None, results: list[Result], spent: float, done: int, cells: int
) -> tuple[float, str]:
    """Return the share of the run that is done, by its total where it has one, and a text of the time left."""
    if now is not None and now.left_s is not None and now.total_s:
        left = f"{seconds_text(round(now.left_s))} of {seconds_text(round(now.total_s))} left"
        return min(1.0, max(0.0, 1 - now.left_s / now.total_s)), left
    seconds = _estimate_seconds_left(results, spent, done, cells)
    return done / cells, "" if seconds is None else f"about {seconds_text(round(seconds))} left"


def _estimate_seconds_left(results: list[Result], spent: float, done: int, cells: int) -> float | None:
    """Return the expected rest of a run from the mean time of its cells; None before the first one is done."""
    worked = min(
        spent, OVERHEAD_FACTOR * sum(result.seconds for result in results)
    )  # a resumed run has idle time as well
    return worked / done * (cells - done) if done else None


def _describe_activity(now: LiveStatus | None) -> str:
    if now is None or now.cell is None:
        return ""
    cell, phase = now.cell, now.phase if now.trial is not None else now.note
    point = f"{cell.size_text}, {seconds_text(cell.cpu_seconds)}"
    visit = f", visit {now.visit}" if now.visit > 1 else ""
    return f"{now.number} of {now.total}: {cell.system}, {point}{visit}{f' ({phase})' if phase else ''}"


def _list_figures(now: LiveStatus | None) -> tuple[tuple[str, str], ...]:
    if now is None or now.trial is None:
        return ()
    backlog = max(0, now.offered - now.processed)
    return (
        ("offered", rate_text(now.offered_hz)),
        ("processed", rate_text(now.processed_hz)),
        ("backlog", f"{format_count(backlog)} messages"),
    )


def _make_maps(
    cells: tuple[Cell, ...], results: dict[Cell, Result], visits: Counter[Cell], current: Cell | None
) -> tuple[SystemMap, ...]:
    sizes = sorted({cell.message_bytes for cell in cells})
    costs = sorted({cell.cpu_seconds for cell in cells}, reverse=True)
    rates = [rate for result in results.values() if (rate := get_shown_rate(result))]
    scale = make_log_scale(rates, rate_text, "messages/s")
    by_point = {(cell.system, cell.message_bytes, cell.cpu_seconds): cell for cell in cells}

    def make_cell(system: str, size: int, cost: float) -> MapCell | None:
        cell = by_point.get((system, size, cost))
        if cell is None:
            return None
        return _make_map_cell(results.get(cell), scale, visits=visits[cell], current=cell == current)

    return tuple(
        SystemMap(
            system,
            tuple((seconds_text(cost), tuple(make_cell(system, size, cost) for size in sizes)) for cost in costs),
        )
        for system in dict.fromkeys(cell.system for cell in cells)
    )


def _make_map_cell(result: Result | None, scale: Scale, *, visits: int, current: bool) -> MapCell:
    if result is None:
        return MapCell("", "", MISSING, visits, "", "", current)
    rate = get_shown_rate(result)
    colour = scale.colour(rate) if rate else None
    ink = "" if colour is None else PALE if is_dark(colour) else INK
    note = format_result_interval(result) or format_reason(result)
    return MapCell(format_claim(result), note, result.status, visits, _format_css(colour), ink, current)


def _format_css(colour: RGB | None) -> str:
    return "" if colour is None else "#" + "".join(f"{round(255 * part):02x}" for part in colour)
