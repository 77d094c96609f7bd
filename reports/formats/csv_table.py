"""The table of all cells: cells.csv, with the names of cells.json, and a shorter one for the page and the PDF."""

import csv
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bench.model.measurement import Result
from bench.plugins.plugin import ReportPlugin
from bench.units import seconds_text, size_text
from reports.data.bottleneck import find_bottleneck
from reports.data.derived import compute_bound_share, get_shown_rate
from reports.data.labels import (
    MISSING,
    WITHOUT_RATE,
    format_claim,
    format_duration,
    format_latency,
    format_result_interval,
    format_sign,
)
from reports.data.run_data import CellData, RunData, read_run_data

FIELDS = (
    "system", "framework", "source", "message_bytes", "cpu_seconds", "status", "reason", "estimate_hz", "low_hz",
    "high_hz", "interval", "precision_reached", "confirmed_hz", "growing_hz", "bound_hz", "bound", "limited_by",
    "generator_hz", "trials", "seconds", "sent", "processed", "lost", "duplicated", "corrupted",
)  # fmt: skip
"""Of a result, with one value each."""
OBJECTIVE_FIELDS = ("estimate_hz", "low_hz", "high_hz", "kept_hz")
"""Of each objective."""
BOUND_COLUMNS = ("soft_bounds.network", "soft_bounds.disk")
"""The lowest of each, in messages/s."""
DELIVERY_FIELDS = ("lost", "duplicated", "corrupted")
"""Not counted by other tools."""
Value = str | int | float | None
COLUMNS = (
    ("System", ""), ("Size", "r"), ("CPU cost", "r"), ("Status", ""), ("Throughput", "r"), ("Interval", "r"),
    ("Bytes/s", "r"), ("Of bound", "r"), ("Bottleneck", ""), ("p50", "r"), ("p99", "r"), ("Trials", "r"), ("Took", "r"),
    ("Lost / dup. / corr.", "r"),
)  # fmt: skip
"""Of the short table: heading and alignment, in the order of CellRow's fields after the anchor."""
QUANTILES = ("p50", "p90", "p99", "max")


class CellRow(Struct, frozen=True):
    """One cell in the short table, as text; `keys` are the values by which the columns sort, None last."""

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
    errors: str = ""
    """lost / duplicated / corrupted"""
    keys: tuple[Value, ...] = ()


def write(run: Path) -> list[Path]:
    """Write cells.csv, a line for every cell of the scenario; return its path."""
    run_data = read_run_data(run)
    roles, objectives = list_roles(run_data), list_objectives(run_data)
    path = run / "cells.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list_columns(roles, objectives), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            make_record(cell_data, roles, objectives, imported=run_data.imported) for cell_data in run_data.cells
        )
    return [path]


def list_columns(roles: tuple[str, ...], objectives: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns; nested fields of cells.json have a dot, and bound_share is the rate shown / bound_hz."""
    return (
        *FIELDS,
        "bound_share",
        *(f"latency_s.{q}" for q in QUANTILES),
        *(f"cpu_share.{role}" for role in roles),
        *(f"objectives.{objective}.{field}" for objective in objectives for field in OBJECTIVE_FIELDS),
        "sizes",
        "remark",
        *BOUND_COLUMNS,
    )


def list_objectives(run_data: RunData) -> tuple[str, ...]:
    """Return every objective that some cell has a separate answer for."""
    results = [cell_data.result for cell_data in run_data.cells if cell_data.result is not None]
    return tuple(sorted({objective.name for result in results for objective in result.objectives}))


def list_roles(run_data: RunData) -> tuple[str, ...]:
    """Return every role with a CPU share in some cell."""
    results = [cell_data.result for cell_data in run_data.cells if cell_data.result is not None]
    return tuple(sorted({role for result in results for role in result.cpu_share}))


def make_record(
    cell_data: CellData, roles: tuple[str, ...], objectives: tuple[str, ...], *, imported: bool = False
) -> Mapping[str, Value]:
    """Return one cell by column; None, which is written as nothing, for a value that does not exist."""
    cell, result = cell_data.cell, cell_data.result
    sizes = cell.sizes.text if cell.sizes is not None else None
    if result is None:
        point = {name: getattr(cell, name) for name in FIELDS[:5]} | {"sizes": sizes}
        trials = len(cell_data.trials)
        return dict.fromkeys(list_columns(roles, objectives)) | point | {"status": MISSING, "trials": trials}
    record: dict[str, Value] = {name: getattr(result, name) for name in FIELDS}
    record |= {"sizes": sizes, "remark": result.remark}
    rate, bound = get_shown_rate(result), result.bound_hz
    record["bound_share"] = rate / bound if rate is not None and bound else None
    record |= {f"latency_s.{q}": getattr(result.latency_s, q) for q in QUANTILES}
    record |= {
        f"objectives.{objective.name}.{field}": getattr(objective, field)
        for objective in result.objectives
        for field in OBJECTIVE_FIELDS
    }
    record |= {f"cpu_share.{role}": result.cpu_share.get(role) for role in roles}
    soft = {f"soft_bounds.{bound.name}": bound.hz for bound in reversed(result.soft_bounds)}
    record |= {name: soft.get(name) for name in BOUND_COLUMNS}
    return record | dict.fromkeys(DELIVERY_FIELDS) if imported else record


def make_rows(run_data: RunData) -> list[CellRow]:
    """Return the rows of the short table."""
    return [_make_row(run_data, cell_data) for cell_data in run_data.cells]


def _make_row(run_data: RunData, cell_data: CellData) -> CellRow:
    cell, result = cell_data.cell, cell_data.result
    point = (cell_data.anchor, cell.system, cell.size_text, seconds_text(cell.cpu_seconds))
    if result is None:
        trials = len(cell_data.trials)
        keys = (cell.system, cell.message_bytes, cell.cpu_seconds, MISSING, *(None,) * 7, trials, None, None)
        return CellRow(*point, MISSING, trials=trials, keys=keys)
    share, bottleneck = compute_bound_share(run_data, cell_data), find_bottleneck(run_data, cell_data)
    rate, sign = get_shown_rate(result), format_sign(result)
    volume = rate * cell.message_bytes if rate is not None else None
    limit, errors = (
        bottleneck.kind if bottleneck is not None else None,
        result.lost + result.duplicated + result.corrupted,
    )
    return CellRow(
        *point,
        status=result.status,
        rate="" if result.status in WITHOUT_RATE else format_claim(result),
        interval=format_result_interval(result),
        volume="" if volume is None else f"{sign}{size_text(volume)}/s",
        share="" if share is None else f"{sign}{100 * share:.3g} %",
        limit=limit or "",
        p50=format_latency(cell_data.deciding, result.latency_s.p50),
        p99=format_latency(cell_data.deciding, result.latency_s.p99),
        trials=result.trials,
        seconds=format_duration(result.seconds) if result.trials else "",
        errors=_format_errors(result) if result.trials and not run_data.imported else "",
        keys=(
            cell.system, cell.message_bytes, cell.cpu_seconds, result.status, rate, result.low_hz,
            volume, share, limit, result.latency_s.p50, result.latency_s.p99, result.trials, result.seconds, errors,
        ),
    )  # fmt: skip


def _format_errors(result: Result) -> str:
    return f"{result.lost} / {result.duplicated} / {result.corrupted}"


plugin = ReportPlugin(write=write, export=True)
