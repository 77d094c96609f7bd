"""The driver's trace of a batch has its phases, and the messages that begin and end the work of each task."""

from itertools import pairwise

import pytest

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import compute_participation
from bench.analysis.activity_graph.summaries import sum_by_activity
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import Span, TraceEvents
from bench.workload.delivery_counts import ProcessingReport
from frameworks.spark import driver_trace
from frameworks.spark.driver_trace import BatchTimes, DriverTrace, add_driver, parse_phases

S = 10**9
PHASES = {"latestOffset": 20, "walCommit": 30, "getBatch": 0, "queryPlanning": 10, "addBatch": 600, "commitOffsets": 40}


def task(number, begin, end, activity="processing"):
    return Span(f"task {number}", activity, round(begin * S), round(end * S), "map")


def traced(batches: int = 3) -> TraceEvents:
    """Return the events of batches of a second: tasks of 0.3 and 0.5 s from 0.15 s on, a result at 0.7 s."""
    trace, found = DriverTrace(), []
    for n in range(batches):
        batch = BatchTimes(n, n + 0.1, n + 0.7)
        workers = [task(0, n + 0.15, n + 0.45), task(1, n + 0.15, n + 0.65)]
        last = None if n == 0 else n - 0.2
        found.append(trace.next_batch(batch, workers, last_ended=last, last_phases=PHASES if n else {}))
    return TraceEvents([s for each in found for s in each.spans], [m for each in found for m in each.messages])


@pytest.mark.parametrize("same_jvm", [True, False], ids=["local", "executors elsewhere"])
def test_pauses_of_the_jvm_are_garbage_collection(same_jvm):
    """Of the driver, and of tasks that wait for the same JVM; a pause is told once, in whichever batch."""
    told = iter([[], [(round(1.01 * S), round(1.02 * S)), (round(1.16 * S), round(1.2 * S))], []])
    trace, spans = DriverTrace(lambda: next(told), same_jvm=same_jvm), []
    for n in range(3):
        batch = BatchTimes(n, n + 0.1, n + 0.7)
        workers = [task(0, n + 0.15, n + 0.3, "source-read"), task(0, n + 0.3, n + 0.65)]
        spans += trace.next_batch(batch, workers, last_ended=n - 0.2, last_phases=PHASES).spans
    collected = [(span.worker, round((span.end - span.begin) / S, 3)) for span in spans if span.activity == "gc"]
    assert sorted(collected) == [("driver", 0.01)] + [("task 0", 0.04)] * same_jvm


def test_phases_are_read_from_the_text_of_a_java_map():
    """In any order."""
    assert parse_phases("{addBatch=120, walCommit=31}") == {"addBatch": 120, "walCommit": 31}
    assert parse_phases("{}") == {}


def test_the_driver_has_one_activity_at_each_moment():
    """From the begin of the first batch to that of the last one, with Spark's phases in their order."""
    spans = sorted((span for span in traced().spans if span.worker == "driver"), key=lambda span: span.begin)
    first = [(span.activity, span.operator, span.begin / S, span.end / S) for span in spans[:8]]
    assert first == [
        ("planning", "latestOffset", 0.0, 0.02), ("wal-commit", "walCommit", 0.02, 0.05),
        ("planning", "queryPlanning", 0.05, 0.06), ("scheduling", "schedule", 0.06, 0.1), ("waiting", "", 0.1, 0.7),
        ("scheduling", "finish", 0.7, pytest.approx(0.76)),
        ("offset-commit", "commitOffsets", pytest.approx(0.76), 0.8),
        ("idle(trigger)", "", 0.8, 1.0),
    ]  # fmt: skip
    assert all(one.end == two.begin for one, two in pairwise(spans[:-1]))


def test_only_the_task_that_ends_last_is_critical():
    """Its order and its result are, too; what the other one does saves nothing."""
    events = traced(12)
    found = compute_participation(make_events(events.spans, events.messages), Windows(S, S, 10))
    assert found.critical.sum(axis=1) == pytest.approx([1.0] * 10)
    assert sum_by_activity(found) == pytest.approx(
        {
            "processing": 0.5, "idle(trigger)": 0.2, "control": 0.1, "scheduling": 0.1, "offset-commit": 0.04,
            "wal-commit": 0.03, "planning": 0.03, "waiting": 0.0,
        }
    )  # fmt: skip
    shares = dict(zip(((group.worker, group.activity) for group in found.groups), found.mean.tolist(), strict=True))
    assert shares["task 0", "processing"] == 0


def test_an_end_of_which_spark_says_nothing_is_left_open():
    """The driver's time until the next batch is then unknown."""
    trace = DriverTrace()
    trace.next_batch(BatchTimes(0, 0.1, 0.7), [], last_ended=None, last_phases={})
    events = trace.next_batch(BatchTimes(1, 1.1, 1.7), [], last_ended=None, last_phases={})
    assert [(span.activity, span.begin / S) for span in events.spans] == [("waiting", 1.1), ("scheduling", 0.0)]


def test_the_time_between_two_tasks_of_a_process_is_scheduling():
    """Where there are more tasks than processes."""
    workers = [Span("p", "processing", 2 * S, 3 * S), Span("p", "processing", S, 2 * S - 5)]
    events = DriverTrace().next_batch(BatchTimes(0, 0.5, 4), workers, last_ended=None, last_phases={})
    assert [span for span in events.spans if span.activity == "scheduling"] == [
        Span("p", "scheduling", 2 * S - 5, 2 * S, driver_trace.OPERATOR)
    ]
    assert [(m.sent, m.received) for m in events.messages] == [(S // 2, S), (3 * S, 4 * S)]


@pytest.mark.parametrize(
    ("processes", "workers"), [((7, 8), ["task 0", "task 1"]), ((7, 7), ["process 7", "process 7"])]
)
def test_workers_are_named_after_tasks_where_each_has_its_process(monkeypatch, processes, workers):
    """Spark gives a task to any free process, so that the process says nothing."""
    monkeypatch.setattr(driver_trace, "epoch", lambda: 1000.0)
    spans = [
        Span(f"process {pid}", "processing", (n + 1) * S, (n + 2) * S, f"task {n}") for n, pid in enumerate(processes)
    ]
    report = ProcessingReport(5.0, 1, [], trace=TraceEvents(spans))
    found, other = add_driver([report, ProcessingReport(5.0, 2, [])], DriverTrace(), (0.5, 5.0), (1_000_100, None), {})
    assert [span.worker for span in found.trace.spans if span.worker != driver_trace.DRIVER] == workers
    assert other.trace is None
