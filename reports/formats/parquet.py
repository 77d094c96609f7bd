"""A run as two tables for other tools: cells.parquet, a row a cell, and trials.parquet, a row a trial; rates in messages/s."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.plugins.plugin import ReportPlugin
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.formats.csv_table import QUANTILES, columns_of, goals_of, roles_of, row_of

NUMBERS = (
    "seconds", "offered", "sent", "failed", "processed", "lost", "duplicated", "out_of_order", "corrupted", "late", "blocked",
    "cpu_requested_s", "cpu_used_s", "batch_interval",
)  # fmt: skip
WORDS = {
    "system",
    "framework",
    "source",
    "status",
    "reason",
    "bound",
    "limited_by",
    "purpose",
    "started",
    "ended",
    "verdict",
    "why",
    "note",
    "sizes",
}
WHOLE = {
    "message_bytes",
    "trials",
    "number",
    "offered",
    "sent",
    "failed",
    "processed",
    "lost",
    "duplicated",
    "out_of_order",
    "corrupted",
}
TRUTHS = {"drained"}
Row = Mapping[str, object]


def write(run: Path) -> list[Path]:
    """Write cells.parquet and trials.parquet."""
    run_data = read_run_data(run)
    roles, goals = roles_of(run_data), goals_of(run_data)
    cells = [row_of(known, roles, goals) for known in run_data.cells]
    trials = [_row_of(known, judged) for known in run_data.cells for judged in known.trials]
    used = tuple(sorted({role for row in trials for role in row if role.startswith(("cpu.", "usage."))}))
    files = (
        (run / "cells.parquet", columns_of(roles, goals), cells),
        (run / "trials.parquet", (*_COLUMNS, *used), trials),
    )
    for path, columns, rows in files:
        pq.write_table(_table_of(columns, rows), path)
    return [path for path, _, _ in files]


_PLACE = ("system", "framework", "source", "message_bytes", "cpu_seconds")
_PLANNED = ("number", "rate", "settle", "window", "purpose")
_COLUMNS = (
    *_PLACE, *_PLANNED, "started", "ended", "verdict", "why", "loss", "drained", *NUMBERS, "note",
    *(f"{kind}.{q}" for kind in ("from_due", "from_sent") for q in QUANTILES),
)  # fmt: skip


def _row_of(known: CellData, judged: JudgedTrial) -> Row:
    seen, verdict = judged.seen, judged.verdict
    row: dict[str, object] = {name: getattr(known.cell, name) for name in _PLACE}
    row |= {name: getattr(seen.planned, name) for name in _PLANNED}
    row |= {
        "started": seen.started,
        "ended": seen.ended,
        "verdict": verdict.word,
        "why": verdict.why,
        "loss": verdict.loss,
    }
    row |= {name: getattr(seen, name) for name in ("drained", "note", *NUMBERS)}
    row |= {f"{kind}.{q}": getattr(getattr(seen, kind), q) for kind in ("from_due", "from_sent") for q in QUANTILES}
    row |= {f"usage.{role}.{kind}": value for role, used in seen.usage.items() for kind, value in used.items()}
    return row | {f"cpu.{role}": seconds for role, seconds in seen.cpu.items()}


def _table_of(columns: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    """A table whose columns have their types also where all values are missing."""
    kinds = {name: _kind_of(name) for name in columns}
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()})


def _kind_of(name: str) -> pa.DataType:
    if name in WORDS:
        return pa.string()
    if name in TRUTHS:
        return pa.bool_()
    return pa.int64() if name in WHOLE else pa.float64()


plugin = ReportPlugin(write=write, export=True)
