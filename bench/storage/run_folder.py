"""A run's folder: everything that a run measured, written before it is judged, readable without the run.

run.json            scenario, site, machine, versions, revision, command      written first (a Java that it
                    could not ask is added later)
trials.jsonl        the journal: one measurement a line with the checksums of its files, appended and synced
visits.jsonl        one visit of a cell a line, appended and synced: what its search was given, what time it took
elasticity.jsonl    of kind elasticity: one interval of a policy a line, or its end, appended and synced
series/*.parquet    the counters of one trial; its micro-batches (-batches)
latency/*           the latency histograms of one trial
traces/*            the trace of one trial, where it is traced: spans, messages, samples
cells.json          the results and the inputs of their searches; derived from the journal, can be rebuilt
logs/  data/        of child processes; data/ is deleted at the end
"""

import contextlib
import math
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Batches, Buckets, Measurement, Result, Series
from bench.model.search_inputs import SearchInputs
from bench.model.trace import TraceEvents
from bench.storage.atomic_file import replace_file
from bench.storage.checksums import seal, seal_files, trial_files
from bench.storage.folder_lock import lock_run_folder
from bench.storage.journal import read_journal, read_line_trial
from bench.storage.json_lines import append_line, cut_partial_line
from bench.storage.records import (
    FORMAT,
    JournalEntry,
    Results,
    RunRecord,
    SearchRecord,
    VisitRecord,
    decode_record,
    encode_record,
    read_format,
)
from bench.storage.series_files import trial_name, write_batches, write_latencies, write_series
from bench.storage.traces import write_trace
from bench.system.machine_speed import MachineSpeed, mean_speed

ELASTICITY = "elasticity.jsonl"
VISITS = "visits.jsonl"


class RunFolder:
    """One run's folder; between `open` and `close`, or the end of a `with open(...)`, one harness writes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # child processes have working folders of their own
        self._results: dict[Cell, Result] = {}
        self._inputs: dict[Cell, SearchInputs] = {}
        self._trials: set[str] = set()
        self._lock: IO[bytes] | None = None

    @classmethod
    def create(cls, parent: Path, name: str) -> "RunFolder":
        """Create a new folder parent/name-UTC; UsageError if that fails."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for number in range(1, 100):
            folder = parent / (f"{name}-{stamp}" if number == 1 else f"{name}-{stamp}-{number}")
            try:
                folder.mkdir(parents=True)
            except OSError as problem:
                if isinstance(problem, FileExistsError) and folder.exists():
                    continue
                raise UsageError(
                    f"{folder}: cannot be created ({problem.strerror}); choose another folder with --out"
                ) from None
            return cls(folder)
        raise UsageError(f"{parent}: no free name for a run of {name}")

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, scenario: Scenario, site: Site, facts: Mapping[str, Any]) -> "RunFolder":
        """Lock the folder, write run.json unless it is complete, and remove a line that a killed harness wrote in part.

        Args:
            scenario: The scenario to run.
            site: Its site.
            facts: About the machine and the software, for run.json.

        Returns:
            This folder, which is closed at the end of a `with`.

        Raises:
            UsageError: Another harness writes to the folder, or its run is of an older format.
        """
        begun = (self.folder / "run.json").exists()
        if begun:
            require_current_format(self.folder)
        self._lock = lock_run_folder(self.folder)
        if self._lock is None:
            raise UsageError(f"{self.folder}: another bench writes to this run now")
        for name in ("series", "latency", "logs", "data", "figures"):
            (self.folder / name).mkdir(exist_ok=True)
        if begun:
            self._record_java(facts.get("java"))
        else:
            self._write_record(RunRecord(FORMAT, scenario, site, dict(facts), now_text()))
        for journal in ("trials.jsonl", VISITS, ELASTICITY):
            cut_partial_line(self.folder / journal)
        recorded = read_results_record(self.folder)
        self._results = {result.cell: result for result in recorded.cells if not _is_tried_again(result)}
        self._inputs = {search.cell: search.inputs for search in recorded.searches}
        lines = read_journal(self.folder)
        self._trials = {trial_name(line.entry.cell, line.entry.measurement) for line in lines}
        return self

    def _record_java(self, java: str | None) -> None:
        """Record the version of Java that the start of the run could not ask for: another one is a change from now."""
        record = read_run(self.folder)
        if java is not None and record.facts.get("java", java) is None:
            self._write_record(replace(record, facts=record.facts | {"java": java}))

    def _write_record(self, record: RunRecord) -> None:
        replace_file(self.folder / "run.json", encode_record(record), synced=True)

    def close(self) -> None:
        """Unlock the folder; idempotent."""
        if self._lock is not None:
            self._lock.close()

    def has_result(self, cell: Cell) -> bool:
        """Return True if the cell has a result, from this run or from one that it resumes."""
        return cell in self._results

    def result(self, cell: Cell) -> Result | None:
        """Return the cell's current result; None if it has none yet."""
        return self._results.get(cell)

    def results(self) -> list[Result]:
        """Return all results so far, in the order in which their cells were finished."""
        return list(self._results.values())

    def trials(self, cell: Cell) -> list[Measurement]:
        """Return the measurements of a cell, with their series, in order."""
        return [entry.measurement for entry in read_trials(self.folder, cell)]

    def add(self, cell: Cell, measurement: Measurement) -> None:
        """Append a measurement to the journal; it and its files are on the disk when this returns.

        Raises:
            UsageError: The folder cannot be written.
            ValueError: The journal has a trial of this number of the cell, whose files would be overwritten.
        """
        trial = trial_name(cell, measurement)
        if trial in self._trials:
            raise ValueError(f"{trial}: is in the journal already")
        with self._report_write_errors():
            for left in trial_files(self.folder, trial):  # by a harness that was killed before it wrote the line
                left.unlink()
            write_series(self.folder, cell, measurement)
            write_batches(self.folder, cell, measurement)
            write_latencies(self.folder, cell, measurement)
            write_trace(self.folder, cell, measurement)
            files = seal_files(self.folder, trial_files(self.folder, trial))
            bare = replace(measurement, series=Series(), batches=Batches(), latencies=Buckets(), trace=TraceEvents())
            append_line(self.folder / "trials.jsonl", seal(encode_record(JournalEntry(FORMAT, cell, bare, files))))
        self._trials.add(trial)

    def inputs(self, cell: Cell) -> SearchInputs | None:
        """Return the inputs of a cell's search; None where they are not known."""
        return self._inputs.get(cell)

    def set_inputs(self, cell: Cell, inputs: SearchInputs) -> None:
        """Keep the inputs of a cell's search; they are written with its next result."""
        self._inputs[cell] = inputs

    def add_visit(self, visit: VisitRecord) -> None:
        """Append a visit to visits.jsonl; it is on the disk when this returns, or UsageError is raised."""
        with self._report_write_errors():
            append_line(self.folder / VISITS, seal(encode_record(visit)))

    def add_elasticity(self, record: Struct) -> None:
        """Append a record to elasticity.jsonl; it is on the disk when this returns, or UsageError is raised."""
        with self._report_write_errors():
            append_line(self.folder / ELASTICITY, seal(msgspec.json.encode(record)))

    def save_result(self, cell: Cell, result: Result) -> None:
        """Write a cell's result, and the inputs of its search, to cells.json; UsageError if that fails."""
        self._results[cell] = result
        searches = [SearchRecord(one, inputs) for one, inputs in self._inputs.items() if one in self._results]
        with self._report_write_errors():
            content = seal(encode_record(Results(FORMAT, self.results(), searches)))
            replace_file(self.folder / "cells.json", content, synced=True)

    @contextlib.contextmanager
    def _report_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:  # a full disk, or a deleted folder
            why = os.strerror(problem.errno) if problem.errno else str(problem)
            raise UsageError(
                f"{self.folder}: cannot be written ({why}); put that right, then go on with --resume"
            ) from None


def require_current_format(folder: Path) -> None:
    """Raise UsageError if an older version of stream-bench wrote the run: it can be read, but not resumed."""
    number = read_run_format(folder)
    if number != FORMAT:
        raise UsageError(
            f"{folder}: is a run of format {number}, and new trials are of format {FORMAT}; "
            "it can be reported and compared, but not resumed: begin a new run"
        )


def read_run_format(folder: Path) -> int:
    """Return the format in which a run was written; UsageError if the folder is not a run's."""
    path = folder / "run.json"
    return read_format(_read_bytes(path), str(path))


def read_run(folder: Path) -> RunRecord:
    """Return a run's run.json; UsageError if the folder is not a run's."""
    path = folder / "run.json"
    return decode_record(_read_bytes(path), RunRecord, str(path))


def read_results(folder: Path) -> list[Result]:
    """Return the results of all cells that have one; UsageError if cells.json cannot be read."""
    return read_results_record(folder).cells


def read_results_record(folder: Path) -> Results:
    """Return all results with the inputs of their searches; UsageError if cells.json cannot be read."""
    path = folder / "cells.json"
    return decode_record(_read_bytes(path), Results, str(path)) if path.exists() else Results(FORMAT, [])


def read_trials(folder: Path, cell: Cell | None = None) -> list[JournalEntry]:
    """Return the journal, each measurement with its series and its micro-batches.

    Args:
        folder: The run's folder.
        cell: Return only the trials of this cell.

    Raises:
        UsageError: A line or a series file cannot be read, or is not as it was written.
    """
    return [read_line_trial(folder, line) for line in read_journal(folder) if cell in (None, line.entry.cell)]


def read_visits(folder: Path) -> list[VisitRecord]:
    """Return the visits of cells that have ended, in order; UsageError if a line cannot be read."""
    path = folder / VISITS
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # a last one without an end is incomplete
    return [decode_record(line, VisitRecord, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def read_speeds(folder: Path) -> list[MachineSpeed]:
    """Return how fast the machine was at the end of each visit where it was measured."""
    return [visit.speed for visit in read_visits(folder) if visit.speed is not None]


def read_speed(folder: Path) -> MachineSpeed | None:
    """Return the mean speed of the machine during a run; None where it was not measured."""
    return mean_speed(read_speeds(folder))


class TrialSums(Struct, frozen=True):
    """Number, seconds and greatest use of cores of a cell's trials."""

    count: int = 0
    seconds: float = 0.0
    """of all of them"""
    busy: float = 0.0
    """most cores of this machine that were in use in one of them, a mean over its window"""


def sum_trials(folder: Path) -> dict[Cell, TrialSums]:
    """Return the number, the seconds and the busiest of the trials of each cell in the journal."""
    sums = dict[Cell, TrialSums]()
    for line in read_journal(folder):
        before, measured = sums.get(line.entry.cell, TrialSums()), line.entry.measurement
        busy = measured.cpu.get("busy", 0.0) / (measured.cpu.get("seconds") or math.inf)
        seconds = before.seconds + measured.seconds
        sums[line.entry.cell] = TrialSums(before.count + 1, seconds, max(before.busy, busy))
    return sums


def now_text() -> str:
    """Return the time of day in UTC, as a label."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_tried_again(result: Result) -> bool:
    """Return whether a resumed run measures the cell again: what it lacked, or what went wrong, may be put right."""
    return result.status == "unsupported" or result.was_ended_by_error


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UsageError(
            f"{path}: {problem.strerror}; a run's folder is what `bench run` named when it ended"
        ) from None
