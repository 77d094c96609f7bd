"""The trace of a trial has what happened in it, with times since its first due time."""

import pytest

from bench.model.trace import Span, TraceEvents, TraceMessage, TraceSample
from bench.runner import trial_trace
from bench.runner.trial_trace import LOAD, TrialTrace
from bench.workload.load_spec import SendProgress

BEGIN = 1000.0
NS = round(BEGIN * 1e9)


def progress(at, late=0.25, blocked=0.5):
    return SendProgress(8, 0, BEGIN + at, 10, 10, 0, late=late, blocked=blocked, done=False)


def test_times_count_from_the_first_due_time():
    """Of spans and of messages."""
    trace = TrialTrace(BEGIN)
    trace.add(
        TraceEvents(
            [Span("w", "processing", NS + 5, NS + 9, "o", 3)], [TraceMessage("data", "a", "b", NS, NS + 7, 1, 2)]
        )
    )
    assert trace.events().spans == [Span("w", "processing", 5, 9, "o", 3)]
    assert trace.events().messages == [TraceMessage("data", "a", "b", 0, 7, 1, 2)]


def test_what_was_over_before_the_trial_is_left_out():
    """What goes on into it is cut."""
    trace = TrialTrace(BEGIN)
    trace.add(TraceEvents([Span("w", "gc", NS - 9, NS - 1), Span("w", "idle(source)", NS - 9, NS + 1)]))
    assert trace.events().spans == [Span("w", "idle(source)", 0, 1)]


def test_the_load_generator_is_sampled_a_few_times_a_second():
    """How late it is, and for how long the source took no more."""
    trace = TrialTrace(BEGIN)
    for at in (0.0, 0.01, 0.02, 0.2):
        trace.add_progress(progress(at))
    assert trace.events().samples[:2] == [TraceSample(0, LOAD, "late_s", 0.25), TraceSample(0, LOAD, "blocked_s", 0.5)]
    assert [sample.at for sample in trace.events().samples] == pytest.approx([0, 0, 2e8, 2e8], abs=1e3)


def test_a_trace_has_a_greatest_size(monkeypatch):
    """Later events are left out."""
    monkeypatch.setattr(trial_trace, "MAX_EVENTS", 3)
    trace = TrialTrace(BEGIN)
    for n in range(9):
        trace.add(TraceEvents([Span("w", "processing", NS + n, NS + n + 1)]))
    assert len(trace.events().spans) == 4
