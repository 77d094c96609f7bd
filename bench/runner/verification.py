"""Verification of a run: its files are as they were measured, and its trials give its results."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.elasticity.live_run import LiveRecord
from bench.errors import HarnessError, UsageError
from bench.model.cell import Cell
from bench.model.measurement import Measurement, Result
from bench.model.search_inputs import SearchInputs
from bench.runner.cell_plan import CellPlan, plan_cell
from bench.runner.outcome import without_rate
from bench.runner.replay import recompute_result
from bench.storage.checksums import TRIAL_FOLDERS, damaged_files, is_intact
from bench.storage.journal import FILE as JOURNAL
from bench.storage.journal import JournalLine, raw_lines, read_line, read_line_trial
from bench.storage.records import FORMAT, Results, VisitRecord, decode_record
from bench.storage.run_folder import ELASTICITY, VISITS, read_results_record, read_run, read_run_format
from bench.storage.series_files import trial_name
from bench.system import host_info

REPORT_S = 2.0
"""Time that a report spends on computing results again."""
MAX_FIELDS = 3
"""Of a result that are named in a difference."""
ROUNDING = 1e-9
"""Relative difference of two numbers that another processor may cause."""
Progress = Callable[[int, int], None]


class Verification(Struct, frozen=True):
    """Things that a verification looked at, and what it found; each text is one line."""

    cells: int
    """whose results were computed again"""
    trials: int
    files: int
    differences: tuple[str, ...]
    unchecked: tuple[str, ...]
    """what could not be checked, and why"""


def verify_run(folder: Path, notify: Progress = lambda _done, _total: None) -> Verification:
    """Check every file of a run that has ended, and compute every result again.

    Args:
        folder: the run folder.
        notify: called with the number of finished cells and of all cells.

    Raises:
        UsageError: the folder is not a run's.
    """
    check = _Check(folder)
    check.find_foreign_files()
    check.find_edited_lines()
    check.compare_results(notify)
    return check.verification()


def check_run(folder: Path) -> tuple[str, ...]:
    """Return the differences that a report must name; results are computed again for REPORT_S seconds at most.

    Results of another revision are not computed again: the search may have changed since. Raises UsageError if the
    folder is not a run's.
    """
    paths = [folder / name for name in ("run.json", "cells.json", JOURNAL, VISITS, ELASTICITY)]
    paths += [path for name in TRIAL_FOLDERS for path in sorted((folder / name).glob("*"))]
    states = [(path.name, path.stat()) for path in paths if path.exists()]
    return _check_unchanged(folder, tuple((name, state.st_size, state.st_mtime_ns) for name, state in states))


@lru_cache(maxsize=16)
def _check_unchanged(folder: Path, _states: tuple[tuple[str, int, int], ...]) -> tuple[str, ...]:
    """Return what check_run returns, once for files of these sizes and times: each format of a report asks for it."""
    check = _Check(folder)
    check.find_edited_lines()
    if check.record.facts.get("revision") == host_info.revision():
        check.compare_results(lambda _done, _total: None, seconds=REPORT_S)
    return check.verification().differences


def summary_text(differences: Sequence[str]) -> str:
    """Return the line with which a report says that a run's files and its results do not agree; "" if they do."""
    if not differences:
        return ""
    more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return f"the files of this run do not agree with its results: {differences[0]}{more}; bench verify lists all"


class _Check:
    """One verification under way: what was read of a run, and what was found so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.record = folder, read_run(folder)
        self.differences: list[str] = []
        self.unchecked: list[str] = []
        self.results = self._read_results()  # before the journal, which a run that goes on only makes longer
        self.lines = self._read_lines()
        self.files = {name: checksum for line in self.lines for name, checksum in line.entry.files.items()}
        self.damaged = self._find_damaged_cells()
        self.cells = 0

    def verification(self) -> Verification:
        """Return what was found."""
        return Verification(
            self.cells, len(self.lines), len(self.files), tuple(self.differences), tuple(self.unchecked)
        )

    def find_edited_lines(self) -> None:
        """Find lines that were edited, of visits and of policies.

        Older versions wrote no checksums there, and a newer one that goes on with their run only appends lines.
        """
        for path in (self.folder / VISITS, self.folder / ELASTICITY):
            lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
            intact = [is_intact(line) for line in lines]
            self.differences += [
                f"{path.name}:{number}: was edited after the run"
                for number, is_so in enumerate(intact, 1)
                if is_so is False
            ]
            old = next((number for number, is_so in enumerate(intact) if is_so is not None), len(lines))
            self.differences += [
                f"{path.name}:{number}: is no record of a run"
                for number, line in enumerate(lines[:old], 1)
                if not _is_record(line, path.name)
            ]
            self.differences += [
                f"{path.name}:{number}: has no checksum, unlike a line before it"
                for number, is_so in enumerate(intact, 1)
                if is_so is None and number > old
            ]
            if old:
                self.unchecked.append(
                    f"{path.name}: {old} of {len(lines)} lines are an older version's, without checksum"
                )

    def find_foreign_files(self) -> None:
        """Find files beside those of the trials; a harness that was killed leaves one trial's at most."""
        if any(not line.entry.files for line in self.lines):
            return
        for name in TRIAL_FOLDERS:
            for path in sorted((self.folder / name).glob("*")):
                relative = path.relative_to(self.folder).as_posix()
                if relative not in self.files:
                    self.differences.append(f"{relative}: is of no trial in {JOURNAL}")

    def compare_results(self, notify: Progress, seconds: float = math.inf) -> None:
        """Compute the results again, for so many seconds at most, and find those that differ."""
        if "imported" in self.record.facts:
            self.unchecked.append("the results are another tool's: they cannot be computed again")
            return
        deadline = time.monotonic() + seconds
        searches = {search.cell: search.inputs for search in self.results.searches}
        trials: dict[Cell, list[JournalLine]] = {cell: [] for cell in self.record.scenario.cells()}
        for line in self.lines:
            trials.setdefault(line.entry.cell, []).append(line)
        before = len(self.differences)
        for number, result in enumerate(self.results.cells):
            if time.monotonic() > deadline:
                self.unchecked.append(f"{len(self.results.cells) - number} results were not computed again")
                break
            self._compare_result(result, trials.get(result.cell), searches.get(result.cell))
            notify(number + 1, len(self.results.cells))
        self._find_missing_results(trials)
        if len(self.differences) > before:
            self._note_revision()

    def _compare_result(self, result: Result, lines: Sequence[JournalLine] | None, inputs: SearchInputs | None) -> None:
        name = result.cell.name
        if lines is None:
            self.differences.append(f"cells.json: {name} is no cell of the scenario")
        elif result.cell in self.damaged:
            self.unchecked.append(f"{name}: its result is not computed again, since files of its trials differ")
        elif inputs is None and result.status != "unsupported":
            self.unchecked.append(f"{name}: the inputs of its search are unknown, its result cannot be computed again")
        elif inputs is None and not lines and self._plan(result, inputs).unsupported_reason is None:
            self.unchecked.append(f"{name}: {result.reason} (this depends on the machine that it ran on)")
        else:
            try:
                trials = [read_line_trial(self.folder, line).measurement for line in lines]
                self._compare(result, self._recompute(result, trials, inputs))
            except HarnessError as problem:
                self.unchecked.append(f"{name}: its result cannot be computed again ({problem})")

    def _compare(self, result: Result, again: Result) -> None:
        self.cells += 1
        name, other = result.cell.name, _differing_fields(result, again)
        if other and result.was_ended_by_error:
            self.cells -= 1
            self.unchecked.append(f"{name}: failed before its search had an answer ({result.reason})")
        elif other:
            first = [f"{field} is {_text(there)}, not {_text(here)}" for field, (there, here) in other.items()]
            more = f" and {len(first) - MAX_FIELDS} more fields" if len(first) > MAX_FIELDS else ""
            self.differences.append(
                f"cells.json: {name} is not what its trials give: {'; '.join(first[:MAX_FIELDS])}{more}"
            )

    def _recompute(self, result: Result, trials: Sequence[Measurement], inputs: SearchInputs | None) -> Result:
        """Return the result of a cell's trials; those after its result are of a search that was interrupted."""
        plan = self._plan(result, inputs)
        if inputs is None:
            reason = plan.unsupported_reason
            return without_rate(plan.cell, "unsupported" if reason is not None else "not-measured", reason or "")
        limit = result.trials or math.inf  # none are counted in a cell that failed
        return recompute_result(plan, inputs, trials, limit=limit)

    def _plan(self, result: Result, inputs: SearchInputs | None) -> CellPlan:
        record = self.record
        cores = inputs.cores if inputs is not None else record.facts.get("cores") or host_info.cores()
        return plan_cell(result.cell, record.scenario, record.site, cores)

    def _find_missing_results(self, trials: Mapping[Cell, Sequence[JournalLine]]) -> None:
        known = {result.cell for result in self.results.cells}
        for search in self.results.searches:
            if search.cell not in known:
                self.differences.append(f"cells.json: the result of {search.cell.name} is missing")
        missing = [cell for cell in trials if cell not in known]
        if missing and self.record.scenario.elasticity is None:
            with_trials = sum(bool(trials[cell]) for cell in missing)
            self.unchecked.append(f"{len(missing)} cells have no result yet, {with_trials} of them have trials")

    def _note_revision(self) -> None:
        was, now = self.record.facts.get("revision"), host_info.revision()
        if was != now:
            self.unchecked.append(f"the run is of revision {was}, this is {now}: differing results may come from that")

    def _read_results(self) -> Results:
        path = self.folder / "cells.json"
        try:
            results = read_results_record(self.folder)
        except UsageError as problem:
            self.differences.append(str(problem))
            return Results(FORMAT, [])
        if path.exists() and is_intact(path.read_bytes()) is False:
            self.differences.append("cells.json: was edited after the run")
        if len(results.cells) != len({result.cell for result in results.cells}):
            self.differences.append("cells.json: has several results of one cell")
        return results

    def _read_lines(self) -> list[JournalLine]:
        lines = []
        if not (self.folder / JOURNAL).exists() and any(result.trials for result in self.results.cells):
            self.differences.append(f"{JOURNAL}: is missing")
        for number, raw in raw_lines(self.folder):
            try:
                lines.append(read_line(self.folder, number, raw))
            except UsageError as problem:
                self.differences.append(str(problem))
        seen = set[str]()
        for line in lines:
            trial = trial_name(line.entry.cell, line.entry.measurement)
            if trial in seen:
                self.differences.append(f"{JOURNAL}:{line.number}: has {trial} a second time")
            seen.add(trial)
        number_of_format = read_run_format(self.folder)
        if number_of_format < FORMAT:
            self.unchecked.append(f"the run is of format {number_of_format}, which has no checksums")
        else:
            self._find_missing_checksums(lines)
        return lines

    def _find_missing_checksums(self, lines: Sequence[JournalLine]) -> None:
        """Find what has no checksum although other records of the run have: a version that writes them writes all."""
        sealed = {f"{JOURNAL}:{line.number}": line.intact is not None for line in lines}
        path = self.folder / "cells.json"
        if path.exists():
            sealed["cells.json"] = is_intact(path.read_bytes()) is not None
        without = [name for name, has in sealed.items() if not has]
        if len(without) < len(sealed):
            self.differences += [f"{name}: has no checksum, unlike the rest of the run" for name in without]
        elif lines:
            self.unchecked.append(f"{len(lines)} of {len(lines)} trials have no checksums: an older version")

    def _find_damaged_cells(self) -> set[Cell]:
        """Return the cells with a line or a file that is not as it was written."""
        damaged = set()
        for line in self.lines:
            problems = damaged_files(self.folder, line.entry.files) or self._missing_series(line)
            self.differences += [f"{name}: {problem}" for name, problem in problems.items()]
            if line.intact is False:
                self.differences.append(f"{JOURNAL}:{line.number}: was edited after the trial")
            if line.intact is False or any(name.startswith("series/") for name in problems):
                damaged.add(line.entry.cell)
        return damaged

    def _missing_series(self, line: JournalLine) -> dict[str, str]:
        """Return the series file of a trial without checksums, if it is missing."""
        name = f"series/{trial_name(line.entry.cell, line.entry.measurement)}.parquet"
        return {} if line.entry.files or (self.folder / name).exists() else {name: "is missing"}


def _is_record(line: bytes, file: str) -> bool:
    """Return whether a line is a record of its file, of any format."""
    try:
        if file == VISITS:
            decode_record(line, VisitRecord, file)
        else:
            msgspec.json.decode(line, type=LiveRecord)
    except (UsageError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _differing_fields(there: Result, here: Result) -> dict[str, tuple[object, object]]:
    """Return the fields in which two results differ, with both values."""
    first, second = msgspec.to_builtins(there), msgspec.to_builtins(here)
    return {name: (first[name], second[name]) for name in first if not _is_equal(first[name], second[name])}


def _is_equal(there: object, here: object) -> bool:
    if isinstance(there, int | float) and isinstance(here, int | float):
        return math.isclose(there, here, rel_tol=ROUNDING)
    if isinstance(there, dict) and isinstance(here, dict):
        return there.keys() == here.keys() and all(_is_equal(there[key], here[key]) for key in there)
    if isinstance(there, list | tuple) and isinstance(here, list | tuple):
        return len(there) == len(here) and all(map(_is_equal, there, here))
    return there == here


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
