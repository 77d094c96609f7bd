"""The trace of a trial: the tables `spans`, `messages` and `samples` in traces/ of a run folder, as Parquet.

Times are nanoseconds since the first message was due. What is read is checked like anybody's file: checksums, columns,
types, names and times.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.analysis.activity_graph.events import ACTIVITY_CODES, KIND_CODES, Events, Messages, Spans
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Measurement
from bench.model.trace import Span, TraceMessage, TraceSample
from bench.storage.checksums import damaged_files, sync_folder
from bench.storage.series_files import REMEDY, trial_name

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "traces"
MAX_ROWS = 50_000_000
MAX_TIME_NS = 10**15
"""Eleven days: no trial is as long."""
MAX_WORKERS = 4000
MAX_NAME_LENGTH = 200
_TABLES: dict[str, type[Struct]] = {"spans": Span, "messages": TraceMessage, "samples": TraceSample}
_TIMES = {"spans": ("begin", "end"), "messages": ("sent", "received"), "samples": ("at",)}
_SPANS, _MESSAGES, _SAMPLES = _TABLES


def write_trace(folder: Path, cell: Cell, measurement: Measurement) -> None:
    """Write the trace of a trial to traces/ of a run folder; nothing if the trial was not traced."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    trace = measurement.trace
    if not trace.spans:
        return
    if not (folder / FOLDER).exists():
        (folder / FOLDER).mkdir()
        sync_folder(folder)
    for name, rows in ((_SPANS, trace.spans), (_MESSAGES, trace.messages), (_SAMPLES, trace.samples)):
        columns = {field: [getattr(row, field) for row in rows] for field in _TABLES[name].__struct_fields__}
        table = pa.table(columns, schema=_schema(name))
        pq.write_table(table, _path(folder, cell, measurement, name), compression="zstd")


def has_trace(cell: Cell, measurement: Measurement, files: Mapping[str, str]) -> bool:
    """Return whether a trial was traced, by the files in its line of the journal."""
    return _name(cell, measurement, _SPANS) in files


def read_events(folder: Path, cell: Cell, measurement: Measurement, files: Mapping[str, str]) -> Events:
    """Return the spans and messages of a trial's trace.

    Args:
        folder: the run folder.
        cell: of the trial.
        measurement: of the trial.
        files: the SHA-256 of each file of the trial, from its line in the journal.

    Raises:
        UsageError: a file is missing, is not as it was written, or is no trace.
    """
    _require_intact(folder, files)
    spans = _Table(_path(folder, cell, measurement, _SPANS), _SPANS)
    messages = _Table(_path(folder, cell, measurement, _MESSAGES), _MESSAGES)
    workers: dict[str, int] = {}
    operators: dict[str, int] = {}
    of_spans = Spans(
        spans.codes("worker", workers),
        spans.known_codes("activity", ACTIVITY_CODES),
        spans.codes("operator", operators),
        spans.times("begin"),
        spans.times("end"),
    )
    if (of_spans.end < of_spans.begin).any():
        raise spans.error("a span ends before it begins")
    of_messages = Messages(
        messages.known_codes("kind", KIND_CODES),
        messages.codes("sender", workers),
        messages.codes("receiver", workers),
        messages.times("sent"),
        messages.times("received"),
    )
    if len(workers) > MAX_WORKERS:
        raise spans.error(f"it has {len(workers)} workers, and {MAX_WORKERS} are allowed")
    return Events(tuple(workers), tuple(operators), of_spans, of_messages)


def read_samples(folder: Path, cell: Cell, measurement: Measurement, files: Mapping[str, str]) -> list[TraceSample]:
    """Return the samples of a trial's trace; the arguments and the errors are those of read_events."""
    _require_intact(folder, files)
    table = _Table(_path(folder, cell, measurement, _SAMPLES), _SAMPLES)
    columns = (table.times("at").tolist(), table.names("entity"), table.names("metric"), table.values("value"))
    return [TraceSample(*row) for row in zip(*columns, strict=True)]


class _Table:
    """A table of a trace, of which every column is checked before it is used."""

    def __init__(self, path: Path, name: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        texts = [field for field, kind in _column_types(name).items() if kind is str]
        try:
            with pa.OSFile(str(path)) as file:
                parquet = pq.ParquetFile(file, read_dictionary=texts, pre_buffer=False)
                if not parquet.schema_arrow.remove_metadata().equals(_schema(name, dictionaries=True)):
                    raise self.error("its columns are not those of a trace")
                if parquet.metadata.num_rows > MAX_ROWS:
                    raise self.error(f"it has {parquet.metadata.num_rows} rows, and {MAX_ROWS} are allowed")
                self._table = parquet.read(use_threads=False)
                self._table.validate(full=True)
        except KeyError:  # of a text column that is not there
            raise self.error("its columns are not those of a trace") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:  # the last: names of columns
            raise self.error(" ".join(str(problem).split())) from None
        if any(column.null_count for column in self._table.columns):
            raise self.error("a value is missing")
        for column in _TIMES[name]:
            self.times(column)

    def error(self, why: str) -> UsageError:
        """Return an error to raise."""
        return UsageError(f"{self._path}: no table of a trace ({why})")

    def times(self, column: str) -> NDArray[np.int64]:
        """Return a column of times."""
        found: NDArray[np.int64] = self._table[column].to_numpy()
        if len(found) and (int(found.max()) > MAX_TIME_NS or int(found.min()) < -MAX_TIME_NS):
            raise self.error(f"column {column}: a time is beyond {MAX_TIME_NS} ns")
        return found

    def values(self, column: str) -> list[float]:
        """Return a column of finite numbers."""
        found = self._table[column].to_numpy()
        if not np.isfinite(found).all():
            raise self.error(f"column {column}: a value is not finite")
        values: list[float] = found.tolist()
        return values

    def names(self, column: str) -> list[str]:
        """Return a column of names."""
        codes, known = self._dictionary(column)
        return [known[code] for code in codes.tolist()]

    def codes(self, column: str, names: dict[str, int]) -> NDArray[np.int64]:
        """Return a column of names as their numbers in `names`, to which new names are added."""
        codes, known = self._dictionary(column)
        numbers = np.array([names.setdefault(name, len(names)) for name in known], dtype=np.int64)
        return numbers[codes] if len(codes) else codes

    def known_codes(self, column: str, numbers: Mapping[Any, int]) -> NDArray[np.int64]:
        """Return a column of names as their numbers; any other name is an error."""
        codes, known = self._dictionary(column)
        unknown = [name for name in known if name not in numbers]
        if unknown:
            raise self.error(f"column {column}: found {unknown[0]!r}; allowed: {', '.join(numbers)}")
        return np.array([numbers[name] for name in known], dtype=np.int64)[codes] if len(codes) else codes

    def _dictionary(self, column: str) -> tuple[NDArray[np.int64], Sequence[str]]:
        """Return a column as places in a list of names."""
        encoded = self._table[column].unify_dictionaries().combine_chunks()
        if not len(encoded):
            return np.zeros(0, dtype=np.int64), ()
        known: list[str] = encoded.dictionary.to_pylist()
        for name in known:
            if len(name) > MAX_NAME_LENGTH or not (name.isprintable() or not name):
                raise self.error(f"column {column}: {name[:40]!r} is no name")
        return encoded.indices.to_numpy().astype(np.int64), known


def _require_intact(folder: Path, files: Mapping[str, str]) -> None:
    for name, problem in damaged_files(folder, files, within=f"{FOLDER}/").items():
        raise UsageError(f"{folder / name}: {problem}; {REMEDY.format(folder)}")


def _column_types(name: str) -> dict[str, type]:
    """Return the Python type of each column of a table: text, whole number, or number."""
    kinds = _TABLES[name].__annotations__
    return {field: str if get_args(kinds[field]) else kinds[field] for field in _TABLES[name].__struct_fields__}


def _schema(name: str, *, dictionaries: bool = False) -> "pa.Schema":
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string()) if dictionaries else pa.string()
    arrow = {str: text, int: pa.int64(), float: pa.float64()}
    return pa.schema([(field, arrow[kind]) for field, kind in _column_types(name).items()])


def _name(cell: Cell, measurement: Measurement, table: str) -> str:
    return f"{FOLDER}/{trial_name(cell, measurement)}-{table}.parquet"


def _path(folder: Path, cell: Cell, measurement: Measurement, table: str) -> Path:
    return folder / _name(cell, measurement, table)
