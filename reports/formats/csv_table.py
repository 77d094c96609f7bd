"""The table of all cells: cells.csv, with the names of cells.json, and the shorter one that people read."""

import csv
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bench.plugins.plugin import ReportPlugin
from bench.units import seconds_text, size_text
from reports.data.bottleneck import limit_of
from reports.data.derived import efficiency_of, rate_of
from reports.data.labels import MISSING, claim_of, interval_text, sign_of
from reports.data.run_data import CellData, JudgedTrial, RunData, read_run_data

PLAIN = (
    "system", "framework", "source", "message_bytes", "cpu_seconds", "status", "reason", "estimate_hz", "low_hz", "high_hz",
    "confirmed_hz", "bound_hz", "bound", "limited_by", "generator_hz", "trials", "seconds", "sent", "processed", "lost",
    "duplicated", "corrupted",
)  # fmt: skip
SIDES = ("estimate_hz", "low_hz", "high_hz", "kept_hz")
"""Of each objective."""
ROOFS = ("soft_bounds.network", "soft_bounds.disk")
"""The lowest of each, in messages/s."""
Value = str | int | float | None
COLUMNS = (
    ("System", ""), ("Size", "r"), ("CPU cost", "r"), ("Status", ""), ("Top rate", "r"), ("Interval", "r"), ("Bytes/s", "r"),
    ("Of bound", "r"), ("Limited by", ""), ("p50", "r"), ("p99", "r"), ("Trials", "r"), ("Took", "r"), ("Lost / dup. / corr.", "r"),
)  # fmt: skip
"""Of the table that people read: name and alignment, in the order of Line's first fields after the anchor."""
QUANTILES = ("p50", "p90", "p99", "max")


class Line(Struct, frozen=True):
    """One cell, as people read it; `keys` are the values by which each column sorts, None last."""

    anchor: str
    system: str
    size: str
    cost: str
    status: str
    rate: str = ""
    interval: str = ""
    volume: str = ""
    share: str = ""
    """of the bound"""
    limit: str = ""
    p50: str = ""
    p99: str = ""
    trials: int = 0
    seconds: str = ""
    wrong: str = ""
    """lost / duplicated / corrupted"""
    keys: tuple[Value, ...] = ()


def write(run: Path) -> list[Path]:
    """Write cells.csv: a line for every cell of the scenario, those without a result with the status "not measured"."""
    run_data = read_run_data(run)
    roles, goals = roles_of(run_data), goals_of(run_data)
    path = run / "cells.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, columns_of(roles, goals), lineterminator="\n")
        lines.writeheader()
        lines.writerows(row_of(known, roles, goals, imported=run_data.imported) for known in run_data.cells)
    return [path]


def columns_of(roles: tuple[str, ...], goals: tuple[str, ...]) -> tuple[str, ...]:
    """The columns: what cells.json nests has a dot in its name, and bound_share is estimate_hz / bound_hz."""
    nested = [f"latency_s.{q}" for q in QUANTILES] + [f"cpu_share.{role}" for role in roles]
    return (
        *PLAIN,
        "bound_share",
        *nested,
        *(f"objectives.{goal}.{side}" for goal in goals for side in SIDES),
        "sizes",
        *ROOFS,
    )


def goals_of(run_data: RunData) -> tuple[str, ...]:
    """Every objective that some cell has an answer of its own for."""
    results = [known.result for known in run_data.cells if known.result is not None]
    return tuple(sorted({each.name for result in results for each in result.objectives}))


def roles_of(run_data: RunData) -> tuple[str, ...]:
    """Every role whose CPU was accounted in some cell."""
    return tuple(
        sorted({role for known in run_data.cells if known.result is not None for role in known.result.cpu_share})
    )


COUNTED = ("lost", "duplicated", "corrupted")
"""What another tool does not count."""


def row_of(
    known: CellData, roles: tuple[str, ...], goals: tuple[str, ...], *, imported: bool = False
) -> Mapping[str, Value]:
    """One cell by column; None, which is written as nothing, where there is no value."""
    cell, result = known.cell, known.result
    sizes = cell.sizes.text if cell.sizes is not None else None
    if result is None:
        place = {name: getattr(cell, name) for name in PLAIN[:5]} | {"sizes": sizes}
        return dict.fromkeys(columns_of(roles, goals)) | place | {"status": MISSING, "trials": len(known.trials)}
    row: dict[str, Value] = {name: getattr(result, name) for name in PLAIN} | {"sizes": sizes}
    row["bound_share"] = (
        result.estimate_hz / result.bound_hz if result.estimate_hz is not None and result.bound_hz else None
    )
    row |= {f"latency_s.{q}": getattr(result.latency_s, q) for q in QUANTILES}
    row |= {f"objectives.{each.name}.{side}": getattr(each, side) for each in result.objectives for side in SIDES}
    row |= {f"cpu_share.{role}": result.cpu_share.get(role) for role in roles}
    row |= {
        name: next((bound.hz for bound in result.soft_bounds if name == f"soft_bounds.{bound.name}"), None)
        for name in ROOFS
    }
    return row | dict.fromkeys(COUNTED) if imported else row


def lines_of(run_data: RunData) -> list[Line]:
    """The table that people read."""
    return [_line_of(run_data, known) for known in run_data.cells]


def _line_of(run_data: RunData, known: CellData) -> Line:
    cell, result = known.cell, known.result
    place = (known.anchor, cell.system, cell.size_text, seconds_text(cell.cpu_seconds))
    if result is None:
        keys = (cell.system, cell.message_bytes, cell.cpu_seconds, MISSING, *(None,) * 7, len(known.trials), None, None)
        return Line(*place, MISSING, trials=len(known.trials), keys=keys)
    share, limit, rate = efficiency_of(run_data, known), limit_of(run_data, known), rate_of(result)
    volume = rate * cell.message_bytes if rate is not None else None
    wrong = result.lost + result.duplicated + result.corrupted
    return Line(
        *place,
        status=result.status,
        rate="" if result.status in ("failed", "unsupported") else claim_of(result),
        interval=interval_text(result.low_hz, result.high_hz),
        volume="" if volume is None else f"{sign_of(result)}{size_text(volume)}/s",
        share="" if share is None else f"{sign_of(result)}{100 * share:.3g} %",
        limit="" if limit is None else limit.kind,
        p50=known_text(known.deciding, result.latency_s.p50),
        p99=known_text(known.deciding, result.latency_s.p99),
        trials=result.trials,
        seconds=time_text(result.seconds) if result.trials else "",
        wrong=f"{result.lost} / {result.duplicated} / {result.corrupted}" if result.trials and not run_data.imported else "",
        keys=(
            cell.system, cell.message_bytes, cell.cpu_seconds, result.status, rate or result.high_hz, result.low_hz, volume, share,
            limit.kind if limit else None, result.latency_s.p50, result.latency_s.p99, result.trials, result.seconds, wrong,
        ),
    )  # fmt: skip


def known_text(judged: JudgedTrial | None, latency: float | None) -> str:
    """A latency, with how far the clocks of several hosts may be apart."""
    clocks = judged.seen.clocks if judged is not None else None
    return (
        f"{time_text(latency)} ± {time_text(clocks.max_latency_error)}"
        if latency is not None and clocks is not None
        else time_text(latency)
    )


def time_text(seconds: float | None) -> str:
    """A duration as people read it; empty where there is none."""
    return "" if seconds is None else seconds_text(seconds)


plugin = ReportPlugin(write=write, export=True)
