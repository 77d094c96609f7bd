"""A recorder turns the laps of a thread into spans without gaps, few of them however short the laps are."""

import pytest

from bench.model.trace import MessageEnd, Span, TraceEvents
from bench.workload import span_recorder
from bench.workload.span_recorder import MAX_SPANS, MIN_WAIT_S, NoRecorder, SpanRecorder, join_events


class ThreadClock:
    """A clock that the test moves: `now` in seconds, and the CPU time of the thread."""

    def __init__(self) -> None:
        self.now = self.cpu = 100.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.cpu

    def work(self, seconds: float) -> None:
        self.now, self.cpu = self.now + seconds, self.cpu + seconds


@pytest.fixture
def clock(monkeypatch):
    clock = ThreadClock()
    monkeypatch.setattr(span_recorder, "time", clock)
    return clock


def seconds(events: TraceEvents) -> list[tuple[str, float, float]]:
    """Return activity, begin and duration of each span, in seconds from 100 s on."""
    return [(one.activity, one.begin / 1e9 - 100, (one.end - one.begin) / 1e9) for one in events.spans]


def test_laps_follow_each_other_without_gaps(clock):
    """Each one begins where the one before ended."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    for activity, length in (("source-read", 1.0), ("processing", 2.0)):
        clock.work(length)
        recorder.lap(activity, 3)
    events = recorder.take()
    assert seconds(events) == [("source-read", 0.0, 1.0), ("processing", 1.0, 2.0)]
    assert events.spans[0] == Span("w", "source-read", 100 * 10**9, 101 * 10**9, "work", 3)


def test_short_laps_of_a_slot_become_one_span_for_each_activity(clock):
    """With the sum of their times and messages."""
    recorder = SpanRecorder("w", "work", slot_s=1.0)
    for _ in range(4):
        clock.work(0.1)
        recorder.lap("source-read")
        clock.work(0.2)
        recorder.lap("processing", 5)
    events = recorder.take()
    assert seconds(events) == [
        ("source-read", 0, pytest.approx(0.4)),
        ("processing", pytest.approx(0.4), pytest.approx(0.8)),
    ]
    assert events.spans[1].messages == 20


def test_an_activity_that_goes_on_is_one_span(clock):
    """An idle worker gives one, however long it is idle."""
    recorder = SpanRecorder("w", "work", slot_s=0.01)
    for _ in range(100):
        clock.now += 0.05
        recorder.lap("idle(source)")
    assert seconds(recorder.take()) == [("idle(source)", 0, pytest.approx(5.0))]


def test_a_wait_is_reading_for_as_long_as_it_takes_cpu_time(clock):
    """The rest is idle."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    recorder.begin_wait()
    clock.work(0.25)
    clock.now += 1.0
    recorder.end_wait()
    assert seconds(recorder.take()) == [("source-read", 0, 0.25), ("idle(source)", 0.25, 1.0)]


def test_a_wait_that_was_ended_by_a_lap_is_over(clock):
    """Its time is the lap's."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    recorder.begin_wait()
    clock.now += 1.0
    recorder.lap("reporting")
    clock.now += 1.0
    recorder.end_wait()
    assert seconds(recorder.take()) == [("reporting", 0, 1.0)]


def test_times_are_those_of_the_machine_of_the_harness(clock):
    """Which is ahead by some seconds."""
    recorder = SpanRecorder("w", "work", ahead_s=7.0, slot_s=0.0)
    clock.work(1.0)
    recorder.lap("processing")
    assert seconds(recorder.take()) == [("processing", 7.0, 1.0)]


def test_spans_are_taken_once(clock):
    """Where none has ended there are none."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    clock.work(1.0)
    recorder.lap("processing")
    assert recorder.take() is not None
    assert recorder.take() is None


def test_what_nobody_takes_has_a_limit(clock):
    """Later spans are left out."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    for _ in range(MAX_SPANS + 5):
        clock.work(1.0)
        recorder.lap("processing")
    assert len(recorder.take().spans) == MAX_SPANS


def test_a_wait_for_another_worker_is_where_it_was(clock):
    """It ends the slot, in which what came before it is put together."""
    recorder = SpanRecorder("w", "work", slot_s=60.0)
    for activity, length in (("processing", 1.0), ("reporting", 1.0), ("processing", 1.0), ("waiting", 4.0)):
        clock.work(length)
        recorder.lap(activity)
    assert seconds(recorder.take()) == [("processing", 0, 2), ("reporting", 2, 1), ("waiting", 3, 4)]


def test_a_very_short_wait_is_a_part_of_reading(clock):
    """It ends no slot."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    clock.work(MIN_WAIT_S / 2)
    recorder.lap("waiting")
    assert [span.activity for span in recorder.take().spans] == ["source-read"]


@pytest.mark.parametrize("rest", ["waiting", "idle(source)"])
def test_what_ended_a_wait_is_recorded_as_received(clock, rest):
    """A receipt at any other moment began nothing, and is left out; idling is as good as waiting."""
    recorder = SpanRecorder("w", "work", ahead_s=1.0)
    clock.now += 2.0
    recorder.lap(rest, at=clock.now)
    recorder.lap("processing", at=clock.now + 60.0)
    recorder.add_received("data", "c", 7, 102.0)
    recorder.add_received("data", "c", 8, 101.0)
    assert recorder.take().ends == [MessageEnd("w", "data", "c", 7, 103 * 10**9, is_sent=False)]


def test_everything_sent_is_recorded(clock):
    """It is taken once, with the spans."""
    recorder = SpanRecorder("w", "work", slot_s=0.0)
    recorder.add_sent("control", "c", 7, 100.0, messages=3)
    assert recorder.take() is None
    clock.work(1.0)
    recorder.lap("processing")
    assert recorder.take().ends == [MessageEnd("w", "control", "c", 7, 100 * 10**9, is_sent=True, messages=3)]


def test_a_thread_that_is_not_traced_records_nothing():
    """Its recorder has the same laps."""
    recorder = NoRecorder()
    sent = recorder.add_sent("data", "c", 7, 1.0), recorder.add_received("data", "c", 7, 1.0)
    done = [recorder.begin_wait(), recorder.end_wait(), recorder.lap("processing"), recorder.take_idle(), *sent]
    assert [*done, recorder.take()] == [None] * 7


def test_events_of_several_reports_are_joined():
    """Those without any count for nothing."""
    one, other = (TraceEvents([Span(name, "processing", 0, 1)]) for name in "ab")
    assert join_events([None, one, None, other]) == TraceEvents([*one.spans, *other.spans])
    assert join_events([None, one]) is one
    assert join_events([None]) is None


def test_an_idle_thread_tells_its_spans_now_and_then(clock):
    """Not each time that it is asked."""
    recorder = SpanRecorder("w", "work")
    recorder.begin_wait()
    taken = []
    for _ in range(24):
        clock.now += 0.05
        taken.append(recorder.take_idle())
    told = [events for events in taken if events is not None]
    assert len(told) == 2
    assert {span.activity for events in told for span in events.spans} == {"idle(source)"}
    assert told[0].spans[0].end == told[1].spans[0].begin
