"""A trial is explained by the windows of its measured time."""

import pytest
from sample_runs import make_measurement

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import compute_participation
from bench.analysis.activity_graph.windows import Windows
from bench.analysis.explanation import analysis_windows, explain
from bench.model.trace import Span

S = 10**9


@pytest.mark.parametrize(("batch", "count"), [(0.0, 40), (1.0, 10), (30.0, 1)])
def test_windows_fill_the_measured_time(batch, count):
    """There are 40 at most, and each has a batch interval, but for a trial that has less."""
    windows = analysis_windows(make_measurement(0, 100.0, 200.0, batch=batch))
    assert windows == Windows(2 * S, 10 * S // count, count)


def test_a_trial_that_was_given_up_early_is_explained_from_its_begin():
    """There is no measured time."""
    measurement = make_measurement(0, 100.0, 50.0, offered=100)
    windows = analysis_windows(measurement)
    assert (windows.begin, windows.count >= 1) == (0, True)


def test_shares_stand_beside_the_profile():
    """Idling is in no profile."""
    spans = [
        Span("a", "processing", 0, 6 * S, "work"), Span("a", "idle(source)", 6 * S, 10 * S, "work"),
        Span("b", "processing", 0, 1 * S, "work"), Span("b", "idle(source)", 1 * S, 10 * S, "work"),
    ]  # fmt: skip
    found = explain(compute_participation(make_events(spans), Windows(0, 10 * S, 1)), batches=False, overloaded=True)
    rows = {row.activity: (row.critical, row.profile) for row in found.activities}
    assert rows == {"processing": (pytest.approx(0.35), 1.0), "idle(source)": (pytest.approx(0.65), None)}
    assert found.straggler == "a"
    assert (found.windows, found.connected) == (1, 1)
    assert "of the critical path" in found.sentence


def test_busy_time_is_of_the_windows_that_have_a_path():
    """As the shares: three windows of garbage collection without a path count for neither."""
    spans = [Span("a", "processing", 0, S, "work")]
    for number in (1, 2, 3):
        begin, middle, end = number * S, number * S + S // 2, (number + 1) * S
        spans += [Span("a", "gc", begin, middle, "work"), Span("a", "waiting", middle, end, "work")]
    found = explain(compute_participation(make_events(spans), Windows(0, S, 4)), batches=False, overloaded=True)
    rows = {row.activity: (row.critical, row.profile) for row in found.activities}
    assert (rows["processing"], rows["gc"], rows["waiting"]) == ((1.0, 1.0), (0.0, 0.0), (0.0, None))
    assert (found.windows, found.connected) == (4, 1)


def test_a_trace_without_events_is_explained_as_having_no_path():
    """Nothing is shared."""
    found = explain(compute_participation(make_events([]), Windows(0, S, 3)), batches=True, overloaded=True)
    assert (found.activities, found.connected) == ((), 0)
    assert "no path" in found.sentence
