"""Data of one run, read from its folder: every cell with its result and its trials, judged again."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.intervals import name_intervals
from bench.analysis.verdict import Rules, Verdict, judge
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Measurement, Result
from bench.model.search_inputs import SearchInputs
from bench.plugins import registry
from bench.plugins.placement import place
from bench.runner.explanation import ExplainedTrial, TracedTrial, choose_trial, explain_trial
from bench.runner.outcome import mask_unseen_cpu
from bench.runner.verification import check_run, summary_text
from bench.storage.journal import JournalLine, read_journal, read_line_trial
from bench.storage.records import RunRecord
from bench.storage.run_folder import read_results_record, read_run, read_speeds, read_visits
from bench.storage.traces import has_trace
from bench.system.machine_speed import MachineSpeed, mean_speed
from bench.units import seconds_text


class MeanSize(int):
    """A message size of the grid that is the mean of different sizes; maps label it as a mean."""


class JudgedTrial(Struct, frozen=True):
    """A trial's measurement and its verdict."""

    measurement: Measurement
    verdict: Verdict
    files: tuple[tuple[str, str], ...] = ()
    """path and SHA-256 of each file of the trial"""


class CellData(Struct, frozen=True):
    """A cell with its result and its trials; `result` is None until its search has ended."""

    cell: Cell
    result: Result | None
    trials: tuple[JudgedTrial, ...]
    workers: int = 1
    """of the load generator, on the last visit"""
    inputs: SearchInputs | None = None
    """of its search; None where the run has not recorded them"""

    @property
    def anchor(self) -> str:
        """The id of the cell's row in the HTML page, unique in a run as its name is."""
        return re.sub(r"[^A-Za-z0-9-]+", "-", f"cell-{self.cell.name}")

    @property
    def point(self) -> str:
        """The message size and the CPU cost as text, such as "10 kB, 20 ms"."""
        return f"{self.cell.size_text}, {seconds_text(self.cell.cpu_seconds)}"

    @property
    def deciding(self) -> JudgedTrial | None:
        """The trial that the result rests on: its confirmation, else the fastest sustained one, else the last one."""
        confirmed = self.result.confirmed_hz if self.result is not None else None
        sustained = [
            trial
            for trial in self.trials
            if trial.verdict.word == "sustained" and trial.measurement.planned.purpose != "warm-up"
        ]
        confirmations = [
            trial
            for trial in sustained
            if trial.measurement.planned.purpose == "confirm" and trial.measurement.planned.rate == confirmed
        ]
        fastest = sorted(sustained, key=lambda trial: trial.measurement.planned.rate)[-1:]
        return [*self.trials[-1:], *fastest, *confirmations][-1] if self.trials else None


class RunData(Struct, frozen=True, dict=True):
    """A whole run: its folder, its record, and every cell of its scenario in the scenario's order."""

    folder: Path
    record: RunRecord
    cells: tuple[CellData, ...]
    disagreement: str = ""
    """a line if the run's files do not agree with its results"""
    speeds: tuple[MachineSpeed, ...] = ()
    """of the machine, visit by visit"""

    @property
    def title(self) -> str:
        """The scenario's title, or its name if it has no title."""
        return self.record.scenario.title or self.record.scenario.name

    @property
    def speed(self) -> MachineSpeed | None:
        """The mean speed of the machine; None where it was not measured."""
        return mean_speed(self.speeds)

    @property
    def imported(self) -> bool:
        """True if another tool measured the run: then the load is unknown, and losses were not counted."""
        return "imported" in self.record.facts

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The systems in the scenario's order."""
        return tuple(dict.fromkeys(cell_data.cell.system for cell_data in self.cells))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The message sizes in bytes, ascending; a mean of different sizes is a MeanSize."""
        means = {cell_data.cell.message_bytes for cell_data in self.cells if cell_data.cell.sizes is not None}
        sizes = sorted({cell_data.cell.message_bytes for cell_data in self.cells})
        return tuple(MeanSize(size) if size in means else size for size in sizes)

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The CPU costs in seconds per message, ascending."""
        return tuple(sorted({cell_data.cell.cpu_seconds for cell_data in self.cells}))

    @property
    def missing(self) -> tuple[CellData, ...]:
        """The cells without a result."""
        return tuple(cell_data for cell_data in self.cells if cell_data.result is None)

    @cached_property
    def explained(self) -> Mapping[Cell, ExplainedTrial]:
        """Explanations by the trial that shows the limit of each cell; cells without a trace are missing."""
        found = {}
        for cell_data in self.cells:
            chosen = choose_trial(list(_traced_trials(cell_data)))
            if chosen is not None:
                with suppress(UsageError):  # the page names files that are not as they were measured
                    found[cell_data.cell] = explain_trial(self.folder, chosen)
        return found

    def of_system(self, system: str) -> tuple[CellData, ...]:
        """Return the cells of one system."""
        return tuple(cell_data for cell_data in self.cells if cell_data.cell.system == system)

    def at(self, size: int, cost: float) -> tuple[CellData, ...]:
        """Return the cells of all systems at one point of the grid."""
        return tuple(self._points.get((size, cost), ()))

    @cached_property
    def _points(self) -> dict[tuple[int, float], list[CellData]]:
        points: dict[tuple[int, float], list[CellData]] = {}
        for cell_data in self.cells:
            points.setdefault((cell_data.cell.message_bytes, cell_data.cell.cpu_seconds), []).append(cell_data)
        return points


def read_run_data(run: Path) -> RunData:
    """Read a run folder and judge its trials again.

    Raises:
        UsageError: the folder is no run folder, or has neither a trial nor a result yet.
    """
    record = read_run(run)
    calibrated = registry.is_calibrated(record.scenario.search.strategy)
    recorded = read_results_record(run)
    results = {
        result.cell: mask_unseen_cpu(result, _unseen_roles(result.cell, record))
        for result in name_intervals(recorded.cells, calibrated=calibrated)
    }
    rules = Rules(record.scenario.objectives, float(record.scenario.search.precision))
    trials: dict[Cell, list[JudgedTrial]] = {}
    for line in read_journal(run):
        trial = _judge_line(run, line, rules)
        measurement = _without_unseen_roles(trial.measurement, line.entry.cell, record)
        trials.setdefault(line.entry.cell, []).append(replace(trial, measurement=measurement))
    if not results and not trials:
        raise UsageError(f"{run}: has no trial and no result yet; continue it with `bench run --resume {run}`")
    cells = dict.fromkeys((*record.scenario.cells(), *results, *trials))
    workers = {visit.cell: visit.workers for visit in read_visits(run)}
    inputs = {search.cell: search.inputs for search in recorded.searches}
    every = tuple(
        CellData(cell, results.get(cell), tuple(trials.get(cell, ())), workers.get(cell, 1), inputs.get(cell))
        for cell in cells
    )
    return RunData(run, record, every, summary_text(check_run(run)), tuple(read_speeds(run)))


def _traced_trials(cell_data: CellData) -> Iterator[TracedTrial]:
    for trial in cell_data.trials:
        if has_trace(cell_data.cell, trial.measurement, dict(trial.files)):
            yield TracedTrial(cell_data.cell, trial.measurement, trial.verdict, trial.files)


def _judge_line(run: Path, line: JournalLine, rules: Rules) -> JudgedTrial:
    """Return a trial and its verdict; one whose series is damaged is shown without it, and judges nothing."""
    try:
        measurement = read_line_trial(run, line).measurement
    except UsageError:
        return JudgedTrial(line.entry.measurement, Verdict("invalid", "its files are not as they were measured"))
    return JudgedTrial(measurement, judge(measurement, rules), tuple(line.entry.files.items()))


_FIELDS_BY_ROLE = ("cpu", "memory", "memory_slope", "usage")


def _unseen_roles(cell: Cell, record: RunRecord) -> frozenset[str]:
    return place(cell.framework, cell.source, record.site, 1, record.scenario.settings).unseen_roles


def _without_unseen_roles(measurement: Measurement, cell: Cell, record: RunRecord) -> Measurement:
    """Return the measurement without the resources of roles that nobody here sees.

    The journal has the resources of our own processes in these roles, such as clients: the verdict needs them, but they
    are not the system's.
    """
    unseen = _unseen_roles(cell, record)
    if not unseen:
        return measurement
    seen = {
        name: {role: value for role, value in getattr(measurement, name).items() if role not in unseen}
        for name in _FIELDS_BY_ROLE
    }
    return replace(measurement, **seen)
