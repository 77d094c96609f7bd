"""The files of one trial beside the journal: its counters, its micro-batches and its latency histograms."""

from pathlib import Path
from typing import TypeVar

import msgspec

from bench.analysis.histogram import KINDS, hgrm_text, histogram_of
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Batches, Buckets, Measurement, Series

Columns = TypeVar("Columns", Series, Batches, Buckets)
REMEDY = "put it back from a copy or begin a new run; `bench verify {}` lists everything that differs"
"""What to do about a file that is not as it was written."""


def trial_name(cell: Cell, measurement: Measurement) -> str:
    """Return the beginning of the names of a trial's files, such as "spark-kafka-10kB-20ms-003"."""
    return f"{cell.name}-{measurement.planned.number:03d}"


def write_series(folder: Path, cell: Cell, measurement: Measurement) -> None:
    """Write the counters of a trial to series/ of a run folder, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(msgspec.structs.asdict(measurement.series)), _series_path(folder, cell, measurement))


def read_series(folder: Path, cell: Cell, measurement: Measurement) -> Series:
    """Return the counters of a trial; UsageError if their file is missing or cannot be read."""
    path = _series_path(folder, cell, measurement)
    if not path.exists():
        raise UsageError(f"{path}: is missing; {REMEDY.format(folder)}")
    return _read_columns(path, Series)


def write_batches(folder: Path, cell: Cell, measurement: Measurement) -> None:
    """Write the micro-batches of a trial to series/ of a run folder, as Parquet; nothing if there are none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if measurement.batches.end:
        table = pa.table(msgspec.structs.asdict(measurement.batches))
        pq.write_table(table, _series_path(folder, cell, measurement, "-batches"))


def read_batches(folder: Path, cell: Cell, measurement: Measurement) -> Batches:
    """Return the micro-batches of a trial; empty if their file is missing, UsageError if it cannot be read."""
    return _read_columns(_series_path(folder, cell, measurement, "-batches"), Batches)


def write_latencies(folder: Path, cell: Cell, measurement: Measurement) -> None:
    """Write the latency histograms of a trial to latency/ of a run folder; nothing if they are empty.

    Each second's histograms go to a Parquet table, the sums from the beginning of the window on to HdrHistogram's text
    format, one file for each kind of latency.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    buckets = measurement.latencies
    if not buckets.second:
        return
    pq.write_table(pa.table(msgspec.structs.asdict(buckets)), _latency_path(folder, cell, measurement, ".parquet"))
    for kind in KINDS:
        histogram = histogram_of(buckets, kind, int(measurement.planned.settle))
        if len(histogram):
            path = _latency_path(folder, cell, measurement, f"-{kind}.hgrm")
            path.write_text(hgrm_text(histogram), encoding="ascii")


def read_latencies(folder: Path, cell: Cell, measurement: Measurement) -> Buckets:
    """Return the latency histograms of a trial; empty if their file is missing, UsageError if it cannot be read."""
    return _read_columns(_latency_path(folder, cell, measurement, ".parquet"), Buckets)


def _series_path(folder: Path, cell: Cell, measurement: Measurement, suffix: str = "") -> Path:
    return folder / "series" / f"{trial_name(cell, measurement)}{suffix}.parquet"


def _latency_path(folder: Path, cell: Cell, measurement: Measurement, suffix: str) -> Path:
    return folder / "latency" / f"{trial_name(cell, measurement)}{suffix}"


def _read_columns(path: Path, kind: type[Columns]) -> Columns:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return kind()
    try:
        with pa.OSFile(str(path)) as file:  # both a quarter of read_table's time; a run has thousands of these files
            table = pq.ParquetFile(file, pre_buffer=False).read(use_threads=False)
        return kind(**{name: table[name].to_numpy().tolist() for name in kind.__struct_fields__})
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError) as problem:  # the last: names of columns
        raise UsageError(f"{path}: no table of a trial ({' '.join(str(problem).split())})") from None
