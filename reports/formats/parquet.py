"""A run as two tables: cells.parquet, one row a cell, and trials.parquet, one row a trial; rates are messages/s."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.plugins.plugin import ReportPlugin
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.formats.csv_table import QUANTILES, list_columns, list_objectives, list_roles, make_record

NUMBER_FIELDS = (
    "seconds", "offered", "sent", "failed", "processed", "lost", "duplicated", "out_of_order", "corrupted", "late",
    "blocked", "cpu_requested_s", "cpu_used_s", "batch_interval",
)  # fmt: skip
TEXT_COLUMNS = {
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
    "interval",
    "remark",
}
INTEGER_COLUMNS = {
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
BOOLEAN_COLUMNS = {"drained", "precision_reached"}
Row = Mapping[str, object]


def write(run: Path) -> list[Path]:
    """Write cells.parquet and trials.parquet; return their paths."""
    run_data = read_run_data(run)
    roles, objectives = list_roles(run_data), list_objectives(run_data)
    cells = [make_record(cell_data, roles, objectives, imported=run_data.imported) for cell_data in run_data.cells]
    trials = [_make_row(cell_data, trial) for cell_data in run_data.cells for trial in cell_data.trials]
    used = tuple(sorted({role for row in trials for role in row if role.startswith(("cpu.", "usage."))}))
    files = (
        (run / "cells.parquet", list_columns(roles, objectives), cells),
        (run / "trials.parquet", (*_TRIAL_COLUMNS, *used), trials),
    )
    for path, columns, rows in files:
        pq.write_table(_make_table(columns, rows), path)
    return [path for path, _, _ in files]


_CELL_FIELDS = ("system", "framework", "source", "message_bytes", "cpu_seconds")
_PLANNED_FIELDS = ("number", "rate", "settle", "window", "purpose")
_TRIAL_COLUMNS = (
    *_CELL_FIELDS, *_PLANNED_FIELDS, "started", "ended", "verdict", "why", "loss", "drained", *NUMBER_FIELDS, "note",
    *(f"{kind}.{q}" for kind in ("from_due", "from_sent") for q in QUANTILES),
)  # fmt: skip


def _make_row(cell_data: CellData, trial: JudgedTrial) -> Row:
    measurement, verdict = trial.measurement, trial.verdict
    row: dict[str, object] = {name: getattr(cell_data.cell, name) for name in _CELL_FIELDS}
    row |= {name: getattr(measurement.planned, name) for name in _PLANNED_FIELDS}
    row |= {
        "started": measurement.started,
        "ended": measurement.ended,
        "verdict": verdict.word,
        "why": verdict.why,
        "loss": verdict.loss,
    }
    row |= {name: getattr(measurement, name) for name in ("drained", "note", *NUMBER_FIELDS)}
    row |= {
        f"{kind}.{q}": getattr(getattr(measurement, kind), q) for kind in ("from_due", "from_sent") for q in QUANTILES
    }
    row |= {f"usage.{role}.{kind}": value for role, used in measurement.usage.items() for kind, value in used.items()}
    return row | {f"cpu.{role}": seconds for role, seconds in measurement.cpu.items()}


def _make_table(columns: Sequence[str], rows: Sequence[Row]) -> pa.Table:
    """Return a table whose columns have their types even if all values are missing."""
    types = {name: _arrow_type(name) for name in columns}
    return pa.table({name: pa.array([row.get(name) for row in rows], column) for name, column in types.items()})


def _arrow_type(name: str) -> pa.DataType:
    if name in TEXT_COLUMNS:
        return pa.string()
    if name in BOOLEAN_COLUMNS:
        return pa.bool_()
    return pa.int64() if name in INTEGER_COLUMNS else pa.float64()


plugin = ReportPlugin(write=write, export=True)
