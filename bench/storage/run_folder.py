"""A run's folder: everything that a run measured, written before it is judged, readable without the run.

run.json            scenario, site, machine, versions, revision, command      written first
trials.jsonl        the journal: one measurement a line, appended and synced
series/*.parquet    the counters of one trial
cells.json          the results; derived from the journal, can be rebuilt
logs/  data/        of children; data/ is deleted at the end
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.histogram import KINDS, hgrm_text, histogram_of
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Buckets, Measurement, Result, Series
from bench.model.message_sizes import MessageSize
from bench.units import Bandwidth, Rate, Seconds, Share, Size, exact_text

FORMAT = 1
Columns = TypeVar("Columns", Series, Buckets)
QUANTITIES = (Size, MessageSize, Seconds, Rate, Share, Bandwidth)


class RunRecord(Struct, frozen=True):
    """What was run, where, with what: run.json."""

    format: int
    scenario: Scenario
    site: Site
    facts: dict[str, Any]
    """of the machine: cores, memory, kernel, versions, git revision, command; see bench.system.host_info"""
    started: str


class Entry(Struct, frozen=True):
    """One line of the journal."""

    format: int
    cell: Cell
    measurement: Measurement


class Results(Struct, frozen=True):
    """cells.json."""

    format: int
    cells: list[Result]


class RunFolder:
    """One run's folder, open for writing by one harness."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # children run in folders of their own, where a relative path leads nowhere
        self._results: dict[Cell, Result] = {}
        self._site = Site()
        self._lock: IO[bytes] | None = None

    @classmethod
    def fresh(cls, parent: Path, name: str) -> "RunFolder":
        """A new folder parent/name-UTC; raises UsageError when it cannot be made."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for number in range(1, 100):
            folder = parent / (f"{name}-{stamp}" if number == 1 else f"{name}-{stamp}-{number}")
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as problem:
                raise UsageError(
                    f"{folder}: cannot be made ({problem.strerror}); choose another place with --out"
                ) from None
            return cls(folder)
        raise UsageError(f"{parent}: no free name for a run of {name}")

    def open(self, scenario: Scenario, site: Site, facts: Mapping[str, Any]) -> None:
        """Save what is about to be run, unless this folder already knows; then forget what a killed harness wrote half."""
        self._site = site
        self._lock = locked(self.folder)
        if self._lock is None:
            raise UsageError(f"{self.folder}: another bench writes to this run now")
        for name in ("series", "latency", "logs", "data", "figures"):
            (self.folder / name).mkdir(exist_ok=True)
        if not (self.folder / "run.json").exists():
            record = RunRecord(FORMAT, scenario, site, dict(facts), now_text())
            _write_whole(self.folder / "run.json", _encoded(record))
        _cut_half_line(self.folder / "trials.jsonl")
        self._results = {result.cell: result for result in read_results(self.folder)}

    def close(self) -> None:
        """Let others write to the folder."""
        if self._lock is not None:
            self._lock.close()

    def has_result(self, cell: Cell) -> bool:
        return cell in self._results

    def results(self) -> list[Result]:
        return list(self._results.values())

    def trials(self, cell: Cell) -> list[Measurement]:
        """What earlier trials of a cell saw, with their series, in order."""
        return [entry.measurement for entry in read_trials(self.folder, cell)]

    def add(self, cell: Cell, seen: Measurement) -> None:
        """Append a measurement to the journal; it is on the disk when this returns. UsageError when the disk does not take it."""
        with self._writing():
            _write_series(_series_file(self.folder, cell, seen), seen.series)
            _write_latencies(self.folder, cell, seen)
            line = _encoded(Entry(FORMAT, cell, replace(seen, series=Series(), latencies=Buckets()))) + b"\n"
            with (self.folder / "trials.jsonl").open("ab") as journal:
                journal.write(line)
                journal.flush()
                os.fsync(journal.fileno())

    def finish(self, cell: Cell, result: Result) -> None:
        """Save a cell's result; UsageError when the disk does not take it."""
        self._results[cell] = mask_remote_cpu(result, self._site)
        with self._writing():
            _write_whole(self.folder / "cells.json", _encoded(Results(FORMAT, self.results())))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:  # a full disk; a folder that somebody has deleted
            why = os.strerror(problem.errno) if problem.errno else str(problem)
            raise UsageError(
                f"{self.folder}: cannot be written ({why}); put that right, then go on with --resume"
            ) from None


def locked(folder: Path) -> IO[bytes] | None:
    """A run's folder for this process alone, until the file is closed or the process ends; None when another has it."""
    file = (folder / ".lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def read_run(folder: Path) -> RunRecord:
    """A run's run.json; UsageError when the folder is not a run's."""
    record: RunRecord = _read(folder / "run.json", RunRecord)
    return record


def read_results(folder: Path) -> list[Result]:
    """The cells that have a result."""
    path = folder / "cells.json"
    return list(_read(path, Results).cells) if path.exists() else []


def read_trials(folder: Path, cell: Cell | None = None) -> list[Entry]:
    """The journal, of one cell or of all, each measurement with its series."""
    path = folder / "trials.jsonl"
    if not path.exists():
        return []
    decoder = msgspec.json.Decoder(Entry, dec_hook=_quantity)
    entries = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            entry = decoder.decode(line)
        except msgspec.MsgspecError as problem:
            raise UsageError(f"{path}:{number}: not a line of a journal of format {FORMAT} ({problem})") from None
        if cell is None or entry.cell == cell:
            series = _read_columns(_series_file(folder, entry.cell, entry.measurement), Series)
            entries.append(replace(entry, measurement=replace(entry.measurement, series=series)))
    return entries


def mask_remote_cpu(result: Result, site: Site) -> Result:
    """Return the result with the CPU share of each role on another host set to None: it is unknown, not zero.

    Applied when a result is written; older runs have 0.0 there, so readers of old runs apply it again.
    """
    remote = remote_roles(result.cell, site) & result.cpu_share.keys()
    return replace(result, cpu_share=result.cpu_share | dict.fromkeys(remote)) if remote else result


def remote_roles(cell: Cell, site: Site) -> set[str]:
    """Return the roles ("framework", "source") of a cell that run on other hosts, where their CPU cannot be measured from here."""
    return {role for role, service in (("framework", cell.framework), ("source", cell.source)) if site.elsewhere(service)}


def now_text() -> str:
    """The time of day, UTC: a label, never measured with."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise UsageError(
            f"{path}: {problem.strerror}; a run's folder is what `bench run` named when it ended"
        ) from None
    try:
        return msgspec.json.decode(raw, type=kind, dec_hook=_quantity)
    except msgspec.MsgspecError as problem:
        raise UsageError(f"{path}: not of format {FORMAT} ({problem})") from None


def _quantity(kind: type, found: object) -> object:
    if kind in QUANTITIES:
        return kind.read(found)
    raise NotImplementedError(kind)


def _encoded(record: Struct) -> bytes:
    line = msgspec.json.encode(record, enc_hook=exact_text)
    return line if isinstance(record, Entry) else msgspec.json.format(line, indent=1)


def _write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one step: whoever reads it sees the old or the new content, also after a crash."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _cut_half_line(journal: Path) -> None:
    """Cut off what a harness wrote of its last line when it was killed."""
    if not journal.exists():
        return
    content = journal.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole != len(content):
        with journal.open("r+b") as file:
            file.truncate(whole)


def read_latencies(folder: Path, cell: Cell, seen: Measurement) -> Buckets:
    """The latency histograms of one trial, by second; empty where there are none."""
    return _read_columns(_latency_file(folder, cell, seen, ".parquet"), Buckets)


def _write_latencies(folder: Path, cell: Cell, seen: Measurement) -> None:
    """Of each second as a table, and of all that was processed since the window began as HdrHistogram writes it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not seen.latencies.second:
        return
    pq.write_table(pa.table(msgspec.structs.asdict(seen.latencies)), _latency_file(folder, cell, seen, ".parquet"))
    planned = seen.planned
    for kind in KINDS:
        histogram = histogram_of(seen.latencies, kind, int(planned.settle))
        if len(histogram):
            _latency_file(folder, cell, seen, f"-{kind}.hgrm").write_text(hgrm_text(histogram), encoding="ascii")


def _latency_file(folder: Path, cell: Cell, seen: Measurement, end: str) -> Path:
    return folder / "latency" / f"{cell.name}-{seen.planned.number:03d}{end}"


def _series_file(folder: Path, cell: Cell, seen: Measurement) -> Path:
    return folder / "series" / f"{cell.name}-{seen.planned.number:03d}.parquet"


def _write_series(path: Path, series: Series) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(msgspec.structs.asdict(series)), path)


def _read_columns(path: Path, kind: type[Columns]) -> Columns:
    """A trial's table; empty where there is none, UsageError where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return kind()
    try:
        with pa.OSFile(
            str(path)
        ) as file:  # as below a quarter of read_table's time; there are thousands of these files
            table = pq.ParquetFile(file, pre_buffer=False).read(use_threads=False)
        return kind(**{name: table[name].to_numpy().tolist() for name in kind.__struct_fields__})
    except (pa.ArrowException, OSError, KeyError) as problem:
        raise UsageError(f"{path}: no table of a trial ({' '.join(str(problem).split())})") from None
