"""What a run that goes on looks like at this moment, as plain data for its live page."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.runner.live_status import Status, read_status
from bench.storage.run_folder import cell_of, read_results, read_run
from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import rate_of
from reports.data.labels import MISSING, claim_of, interval_text, reason_of
from reports.figures.palette import INK, PALE, RGB, is_dark
from reports.figures.scale import logarithmic
from reports.figures.timeline import count_text

AROUND = 2.0
"""How many times the seconds of its trials a cell takes at most, with what comes before and between them."""


class Field(Struct, frozen=True):
    """One cell of the map; colours are CSS, empty where it has none."""

    claim: str
    small: str
    status: str
    env: str
    ink: str
    now: bool


class Map(Struct, frozen=True):
    """One system's map: a row for each cost, dear ones first; None where the scenario has no cell."""

    system: str
    rows: tuple[tuple[str, tuple[Field | None, ...]], ...]


class Pulse(Struct, frozen=True):
    """The whole page."""

    running: bool
    done: int
    of: int
    share: float
    spent: str
    left: str
    doing: str
    trial: str
    figures: tuple[tuple[str, str], ...]
    """name and value: offered, processed, backlog"""
    elapsed: float
    """of the trial, as a share"""
    sizes: tuple[str, ...]
    maps: tuple[Map, ...]


def pulse_of(run: Path, *, running: bool) -> Pulse:
    """What the folder of a run says now; UsageError when it is none."""
    record = read_run(run)
    results = {cell_of(result): result for result in read_results(run)}
    now = read_status(run) if running else None
    cells = record.scenario.cells()
    done = sum(cell in results for cell in cells)
    spent = max(
        0.0,
        (
            datetime.now(UTC) - datetime.strptime(record.started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        ).total_seconds(),
    )
    worked = min(
        spent, AROUND * sum(result.seconds for result in results.values())
    )  # a run that is resumed stood still in between
    left = worked / done * (len(cells) - done) if done else None
    planned = now.trial if now is not None else None
    whole = planned.settle + planned.window if planned is not None else 0.0
    return Pulse(
        running, done, len(cells), done / len(cells),
        spent=seconds_text(round(spent)) if running else "",
        left="" if left is None or not running else f"about {seconds_text(round(left))} left",
        doing=_doing(now),
        trial="" if planned is None else f"trial {planned.number + 1} ({planned.purpose}) at {rate_text(planned.rate)}",
        figures=_figures(now),
        elapsed=min(1.0, now.elapsed / whole) if now is not None and whole else 0.0,
        sizes=tuple(size_text(size) for size in sorted({cell.message_bytes for cell in cells})),
        maps=_maps(cells, results, now.cell if now is not None else None),
    )  # fmt: skip


def _doing(now: Status | None) -> str:
    if now is None or now.cell is None:
        return ""
    cell, what = now.cell, now.phase if now.trial is not None else now.note
    point = f"{cell.size_text}, {seconds_text(cell.cpu_seconds)}"
    return f"{now.number} of {now.total}: {cell.system}, {point}{f' ({what})' if what else ''}"


def _figures(now: Status | None) -> tuple[tuple[str, str], ...]:
    if now is None or now.trial is None:
        return ()
    backlog = max(0, now.offered - now.processed)
    return (
        ("offered", rate_text(now.offered_hz)),
        ("processed", rate_text(now.processed_hz)),
        ("backlog", f"{count_text(backlog)} messages"),
    )


def _maps(cells: tuple[Cell, ...], results: dict[Cell, Result], current: Cell | None) -> tuple[Map, ...]:
    sizes, costs = (
        sorted({cell.message_bytes for cell in cells}),
        sorted({cell.cpu_seconds for cell in cells}, reverse=True),
    )
    scale = logarithmic([rate for result in results.values() if (rate := _rate(result))], rate_text, "messages/s")
    known = {(cell.system, cell.message_bytes, cell.cpu_seconds): cell for cell in cells}

    def field(system: str, size: int, cost: float) -> Field | None:
        cell = known.get((system, size, cost))
        if cell is None:
            return None
        result = results.get(cell)
        rate = _rate(result)
        colour = scale.colour(rate) if rate else None
        ink = "" if colour is None else PALE if is_dark(colour) else INK
        small = "" if result is None else interval_text(result.low_hz, result.high_hz) or reason_of(result)
        return Field(
            claim_of(result) if result else "",
            small,
            result.status if result else MISSING,
            _css(colour),
            ink,
            cell == current,
        )

    return tuple(
        Map(system, tuple((seconds_text(cost), tuple(field(system, size, cost) for size in sizes)) for cost in costs))
        for system in dict.fromkeys(cell.system for cell in cells)
    )


def _rate(result: Result | None) -> float | None:
    return result.high_hz if result is not None and result.status == "upper-bound" else rate_of(result)


def _css(colour: RGB | None) -> str:
    return "" if colour is None else "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def is_running(run: Path) -> bool:
    """Whether a harness has the run's lock now, told from proc(5) /proc/locks, so that looking never takes it."""
    try:
        inode = (run / ".lock").stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any(
        words[1] == "FLOCK" and words[5].rsplit(":", 1)[-1] == str(inode)
        for line in locks
        if len(words := line.split()) > 5
    )
