"""Explanations of the traced trials of a run: which trial of a cell is explained, and what its trace says."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bench.analysis.activity_graph.participation import Participation, compute_participation
from bench.analysis.explanation import Explanation, SampleMean, analysis_windows, explain, mean_samples
from bench.analysis.verdict import Rules, Verdict, judge
from bench.model.cell import Cell
from bench.model.measurement import Measurement
from bench.storage.journal import read_journal, read_line_trial
from bench.storage.run_folder import read_run
from bench.storage.traces import has_trace, read_events, read_samples

HOW_TO_TRACE = "`bench run --trace` or `trace: true` in the scenario traces all cells"
"""What to do about cells without traces: unless a scenario says otherwise, only some have one (`CellPlan.traced`)."""


class TracedTrial(Struct, frozen=True):
    """A trial whose trace was kept."""

    cell: Cell
    measurement: Measurement
    verdict: Verdict
    files: tuple[tuple[str, str], ...]
    """path and SHA-256 of each file of the trial"""


class ExplainedTrial(Struct, frozen=True):
    """A traced trial and what its trace says."""

    trial: TracedTrial
    participation: Participation
    explanation: Explanation
    samples: tuple[SampleMean, ...] = ()


def read_traced_trials(folder: Path) -> dict[Cell, list[TracedTrial]]:
    """Return the traced trials of each cell of a run, judged again; UsageError if a file is not as it was written."""
    scenario = read_run(folder).scenario
    rules = Rules(scenario.objectives, float(scenario.search.precision))
    found: dict[Cell, list[TracedTrial]] = {cell: [] for cell in scenario.cells()}
    for line in read_journal(folder):
        entry = line.entry
        if has_trace(entry.cell, entry.measurement, entry.files):
            measurement = read_line_trial(folder, line).measurement
            files = tuple(entry.files.items())
            found.setdefault(entry.cell, []).append(
                TracedTrial(entry.cell, measurement, judge(measurement, rules), files)
            )
    return found


def choose_trial(trials: Sequence[TracedTrial]) -> TracedTrial | None:
    """Return the trial of a cell that shows what limits it: the overloaded one nearest above what was sustained.

    Without one, it is the fastest sustained one, else the last one; None without a trial.
    """
    sustained = [one for one in trials if one.verdict.word == "sustained"]
    top = max((one.measurement.planned.rate for one in sustained), default=0.0)
    above = [
        one
        for one in trials
        if one.verdict.word == "overloaded"
        and one.measurement.planned.rate > top
        and one.measurement.planned.purpose != "warm-up"
    ]
    if above:
        return min(above, key=lambda one: one.measurement.planned.rate)
    if sustained:
        return max(sustained, key=lambda one: one.measurement.planned.rate)
    return trials[-1] if trials else None


def explain_trial(folder: Path, trial: TracedTrial) -> ExplainedTrial:
    """Return what the trace of a trial says; UsageError if it cannot be read."""
    place = folder, trial.cell, trial.measurement, dict(trial.files)
    windows = analysis_windows(trial.measurement)
    participation = compute_participation(read_events(*place), windows)
    batches = trial.measurement.batch_interval > 0
    explanation = explain(participation, batches=batches, overloaded=trial.verdict.word == "overloaded")
    return ExplainedTrial(trial, participation, explanation, mean_samples(read_samples(*place), windows))
