"""The trace of the queue is complete while somebody asks for it, and costs nothing otherwise."""

import pytest

from frameworks.harmonicio.engine.master import queue_trace
from frameworks.harmonicio.engine.master.queue_trace import MIN_WAIT_S, QueueSpan, QueueTrace
from frameworks.harmonicio.engine.observer import Transfer, lease_transfer

HAND_OUT = Transfer("data", "1 from the queue", 7, 3)


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(queue_trace, "time", clock)
    return clock


def record(trace, clock, began, ended, activity="serialize"):
    """Record an activity between two times."""
    clock.now = ended
    trace.worked(activity, began)


def test_nothing_is_recorded_before_somebody_asks(clock):
    """The first request begins."""
    trace = QueueTrace()
    record(trace, clock, 100.0, 101.0)
    trace.sent(HAND_OUT)
    trace.received(HAND_OUT, 101.0)
    events = trace.take(102.0)
    assert (events.spans, events.ends) == ([], [])


def test_the_time_between_activities_is_waiting(clock):
    """From one request to the next, without a gap."""
    trace = QueueTrace()
    trace.take(100.0)
    record(trace, clock, 101.0, 103.0)
    record(trace, clock, 103.0 + MIN_WAIT_S / 2, 104.0, "wal-commit")
    assert trace.take(105.0).spans == [
        QueueSpan("waiting", 100.0, 101.0), QueueSpan("serialize", 101.0, 103.0),
        QueueSpan("wal-commit", 103.0 + MIN_WAIT_S / 2, 104.0), QueueSpan("waiting", 104.0, 105.0),
    ]  # fmt: skip
    assert trace.take(106.0).spans == [QueueSpan("waiting", 105.0, 106.0)]


def test_frames_are_taken_once(clock):
    """With the time at which they were sent, or at which the wait for them ended."""
    trace = QueueTrace()
    trace.take(100.0)
    clock.now = 101.0
    trace.sent(HAND_OUT)
    trace.received(lease_transfer(1, 2), 100.5)
    assert [(end.is_sent, end.transfer.number, end.at) for end in trace.take(102.0).ends] == [
        (True, 7, 101.0), (False, 2, 100.5),
    ]  # fmt: skip
    assert trace.take(103.0).ends == []


def test_what_nobody_takes_has_a_limit(clock, monkeypatch):
    """The next request begins again."""
    monkeypatch.setattr(queue_trace, "MAX_EVENTS", 3)
    trace = QueueTrace()
    trace.take(100.0)
    for _ in range(9):
        trace.sent(HAND_OUT)
    assert len(trace.take(101.0).ends) == 3
    trace.sent(HAND_OUT)
    assert len(trace.take(102.0).ends) == 1
