"""The trace of Spark's driver: what it does around each micro-batch, and its messages to and from the Python workers.

Structured Streaming gives the durations of a trigger's phases; Spark Streaming only its begin and end. Both come with
the next batch. The Python workers record themselves (tasks.py): a batch begins for them with a control message from the
driver, and ends with one to it. While the JVM collects garbage, nothing of it goes on: such a part of the driver's
spans, and where the tasks run in the same JVM, of their waits for it, is `gc`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from bench.model.trace import Activity, Span, TraceEvents, TraceMessage
from bench.system.clock import epoch
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.span_recorder import join_events
from frameworks.spark.gc_log import GcLog, Pause, split_spans

DRIVER, OPERATOR = "driver", "map"
_BEFORE: dict[str, Activity] = {
    "latestOffset": "planning", "walCommit": "wal-commit", "getBatch": "planning", "queryPlanning": "planning",
}  # fmt: skip
"""Phases of a trigger before its jobs run, in Spark's order."""
_COMMIT = "commitOffsets"
_OF_DRIVER: frozenset[Activity] = frozenset(("planning", "wal-commit", "scheduling", "offset-commit"))
_OF_TASK: frozenset[Activity] = frozenset(("source-read", "scheduling"))
"""What a Python worker waits for the JVM in."""


class BatchTimes(Struct, frozen=True):
    """A micro-batch by the driver's clock, in CLOCK_MONOTONIC seconds."""

    started: float
    """when Spark began to plan it"""
    called: float
    """when its tasks were ordered"""
    at: float
    """when their results were there"""


class DriverTrace:
    """The driver's part of the trace of one stream, whose batches follow one another.

    Args:
        pauses: returns those of the driver's JVM since it was called last.
        same_jvm: whether the tasks run in the driver's JVM.
    """

    def __init__(self, pauses: Callable[[], Sequence[Pause]] = tuple, *, same_jvm: bool = True) -> None:
        self._new_pauses, self._same_jvm = pauses, same_jvm
        self._pauses: list[Pause] = []
        self._last: BatchTimes | None = None
        self._number = 0

    def next_batch(
        self, batch: BatchTimes, workers: Sequence[Span], *, last_ended: float | None, last_phases: Mapping[str, int]
    ) -> TraceEvents:
        """Return everything of the Python workers in a batch, and the driver's spans as far as they are known by now.

        Args:
            batch: that has run.
            workers: spans of the Python workers in it.
            last_ended: when the batch before had been committed; None if Spark has not said so.
            last_phases: milliseconds of the phases of the batch before, by Spark's names; empty where it tells none.
        """
        self._number += 1
        waits = Span(DRIVER, "waiting", _ns(batch.called), _ns(batch.at))
        self._pauses += self._new_pauses()
        of_tasks = [*workers, *_fill_gaps(workers)]
        if self._same_jvm:
            of_tasks = split_spans(of_tasks, self._pauses, _OF_TASK)
        spans = [*of_tasks, waits]
        if self._last is not None:
            of_driver = _driver_spans(self._last, last_ended, last_phases, batch.started)
            spans += split_spans(of_driver, self._pauses, _OF_DRIVER)
            self._pauses = [pause for pause in self._pauses if pause[1] > _ns(batch.started)]
        self._last = batch
        return TraceEvents(spans, _messages(batch, workers, self._number))


def start_trace(master: str | None) -> DriverTrace:
    """Return the trace of a stream that begins now, with the pauses that the driver's JVM logs.

    Args:
        master: Spark's; of a local one the tasks run in the driver's JVM.
    """
    return DriverTrace(GcLog().read, same_jvm=(master or "").startswith("local"))


def add_driver(
    reports: list[ProcessingReport],
    trace: DriverTrace,
    ran: tuple[float, float],
    times_ms: tuple[int, int | None],
    last_phases: Mapping[str, int],
) -> list[ProcessingReport]:
    """Return the reports of a batch, of which the first one carries the driver's events, too.

    Args:
        reports: of a batch, with the spans of its Python workers; without a report the events are lost.
        trace: of the stream.
        ran: CLOCK_MONOTONIC seconds at which the tasks were ordered, and at which their results were there.
        times_ms: when Spark began to plan the batch, and when it had committed the one before, in milliseconds since
            1970.
        last_phases: milliseconds of the phases of the batch before.
    """
    offset_s = epoch()
    started_ms, last_ended_ms = times_ms
    batch = BatchTimes(min(started_ms / 1000 - offset_s, ran[0]), *ran)
    last_ended = None if last_ended_ms is None else last_ended_ms / 1000 - offset_s
    recorded = join_events(report.trace for report in reports)
    workers = _name_workers(recorded.spans if recorded is not None else [])
    events = trace.next_batch(batch, workers, last_ended=last_ended, last_phases=last_phases)
    return [replace(report, trace=None if number else events) for number, report in enumerate(reports)]


def parse_phases(text: str) -> dict[str, int]:
    """Return the milliseconds of phases in the text of a Java map, such as "{addBatch=120, walCommit=31}"."""
    pairs = (pair.partition("=") for pair in text.strip("{}").split(", ") if pair)
    return {name: int(value) for name, _, value in pairs}


def _driver_spans(batch: BatchTimes, ended: float | None, phases: Mapping[str, int], next_started: float) -> list[Span]:
    """Return what the driver did before and after the tasks of a batch, from its begin to that of the next one."""
    lane = _Lane(batch.started)
    for phase, activity in _BEFORE.items():
        lane.add(activity, min(lane.at + phases.get(phase, 0) / 1000, batch.called), phase)
    lane.add("scheduling", batch.called, "schedule")
    lane.at = batch.at
    if ended is not None:
        ended = min(max(ended, batch.at), next_started)
        lane.add("scheduling", max(batch.at, ended - phases.get(_COMMIT, 0) / 1000), "finish")
        lane.add("offset-commit", ended, _COMMIT)
        lane.add("idle(trigger)", next_started, "")
    return lane.spans


class _Lane:
    """The timeline of the driver under construction: spans that follow one another."""

    def __init__(self, begin: float) -> None:
        self.at, self.spans = begin, list[Span]()

    def add(self, activity: Activity, end: float, operator: str) -> None:
        """Add an activity until `end`; nothing if it takes no time."""
        if end > self.at:
            self.spans.append(Span(DRIVER, activity, _ns(self.at), _ns(end), operator))
            self.at = end


def _messages(batch: BatchTimes, workers: Sequence[Span], number: int) -> list[TraceMessage]:
    """Return the orders to each Python worker of a batch, and its result.

    The result of the worker that ends last is there when the driver goes on. The others took as long.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for span in workers:
        first[span.worker] = min(span.begin, first.get(span.worker, span.begin))
        last[span.worker] = max(span.end, last.get(span.worker, span.end))
    called, at = _ns(batch.called), _ns(batch.at)
    way = at - max(last.values(), default=at)
    orders = [
        TraceMessage("control", DRIVER, worker, called, max(begin, called), number) for worker, begin in first.items()
    ]
    results = [TraceMessage("control", worker, DRIVER, end, end + way, number) for worker, end in last.items()]
    return orders + results


def _name_workers(spans: Sequence[Span]) -> list[Span]:
    """Return spans whose workers are named after their tasks, where each task has a process of its own.

    Spark gives a task to any free process: with the number of the partition the same work has the same name in every
    batch.
    """
    own = len({span.worker for span in spans}) == len({span.operator for span in spans})
    return [replace(span, worker=span.operator if own else span.worker, operator=OPERATOR) for span in spans]


def _fill_gaps(workers: Sequence[Span]) -> list[Span]:
    """Return the time between two tasks that a Python worker runs in one batch, as scheduling."""
    ordered = sorted(workers, key=lambda span: (span.worker, span.begin))
    return [
        Span(one.worker, "scheduling", one.end, two.begin, OPERATOR)
        for one, two in pairwise(ordered)
        if one.worker == two.worker and two.begin > one.end
    ]


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
