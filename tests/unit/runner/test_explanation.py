"""The trial of a cell that is explained is the one that shows what limits it."""

import pytest
from sample_runs import QUICK, make_measurement, open_run_folder

from bench.analysis.explanation import SampleMean
from bench.analysis.verdict import Verdict
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.trace import Span, TraceEvents, TraceSample
from bench.runner.explanation import TracedTrial, choose_trial, explain_trial, read_traced_trials

CELL = Cell("python", "kafka", 100, 0.01)
S = 10**9
TRACE = TraceEvents([Span("w", "processing", 0, 9 * S, "work"), Span("w", "idle(source)", 9 * S, 20 * S, "work")])


def trial(number, rate, word, purpose="search"):
    return TracedTrial(CELL, make_measurement(number, rate, 100.0, purpose), Verdict(word), ())


@pytest.mark.parametrize(
    ("trials", "number"),
    [
        ([trial(0, 90, "sustained"), trial(1, 150, "overloaded"), trial(2, 110, "overloaded")], 2),
        ([trial(0, 50, "overloaded"), trial(1, 90, "sustained"), trial(2, 80, "sustained")], 1),
        ([trial(0, 200, "overloaded", "warm-up"), trial(1, 90, "sustained")], 1),
        ([trial(0, 90, "invalid"), trial(1, 95, "invalid")], 1),
    ],
    ids=["nearest above", "fastest below", "no warm-up", "the last one"],
)
def test_the_trial_nearest_above_what_was_sustained_is_explained(trials, number):
    """Without one, the fastest that was sustained."""
    assert choose_trial(trials).measurement.planned.number == number


def test_a_cell_without_traces_has_no_such_trial():
    """Nothing is made up."""
    assert choose_trial([]) is None


@pytest.fixture
def folder(tmp_path):
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 90.0, 100.0))
        store.add(CELL, make_measurement(1, 90.0, 100.0, trace=TRACE))
    return tmp_path / "run"


def test_traced_trials_are_read_and_judged(folder):
    """Those without a trace are left out, and cells without any have none."""
    traced = read_traced_trials(folder)
    assert [one.measurement.planned.number for one in traced[CELL]] == [1]
    assert traced[CELL][0].verdict.word == "sustained"
    assert sum(map(len, traced.values())) == 1


def test_samples_of_the_measured_time_are_averaged(tmp_path):
    """From 2 s to 12 s; what was sampled before or afterwards does not count, and no sum since the begin does."""
    samples = [TraceSample(5 * S, "load generator", "blocked_s", 7.0)]
    samples += [TraceSample(at * S, "sender 0", "round_trip_s", value) for at, value in ((1, 9.0), (3, 1.0), (5, 2.0))]
    with open_run_folder(tmp_path / "run", QUICK) as store:
        store.add(CELL, make_measurement(0, 90.0, 100.0, trace=TraceEvents(TRACE.spans, samples=samples)))
    (one,) = read_traced_trials(tmp_path / "run")[CELL]
    assert explain_trial(tmp_path / "run", one).samples == (SampleMean("sender 0", "round_trip_s", 1.5),)


def test_a_traced_trial_is_explained(folder):
    """By the windows of its measured time, from 2 s to 12 s: the worker is busy for 7 of them."""
    (one,) = read_traced_trials(folder)[CELL]
    assert explain_trial(folder, one).explanation.shares == pytest.approx({"processing": 0.7, "idle(source)": 0.3})


def test_a_damaged_trace_is_refused(folder):
    """With the name of its file."""
    (one,) = read_traced_trials(folder)[CELL]
    next((folder / "traces").glob("*-spans.parquet")).write_bytes(b"")
    with pytest.raises(UsageError, match=r"spans\.parquet"):
        explain_trial(folder, one)
