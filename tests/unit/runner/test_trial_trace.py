"""The trace of a trial has what happened in it, with times since its first due time."""

import pytest
from msgspec.structs import replace

from bench.model.trace import MessageEnd, Span, TraceEvents, TraceMessage, TraceSample
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


def test_samples_of_others_count_from_the_first_due_time():
    """Earlier ones are left out."""
    trace = TrialTrace(BEGIN)
    trace.add(TraceEvents(samples=[TraceSample(NS + at, "task", "busy", 0.5) for at in (-1, 5)]))
    assert trace.events().samples == [TraceSample(5, "task", "busy", 0.5)]


def sent(at, number=1):
    return TraceEvents(ends=[MessageEnd("a", "data", "c", number, NS + at, is_sent=True, messages=3)])


def received(at, number=1):
    return TraceEvents(ends=[MessageEnd("b", "data", "c", number, NS + at, is_sent=False)])


@pytest.mark.parametrize("parts", [(sent(5), received(9)), (received(9), sent(5))], ids=["in order", "receipt first"])
def test_two_ends_are_one_message(parts):
    """Whichever of them is reported first."""
    trace = TrialTrace(BEGIN)
    for part in parts:
        trace.add(part)
    assert trace.events().messages == [TraceMessage("data", "a", "b", 5, 9, 1, 3)]


def test_what_is_sent_again_counts_from_then_on():
    """The first attempt did not arrive."""
    trace = TrialTrace(BEGIN)
    for part in (sent(5), sent(7), received(9), received(9, number=2)):
        trace.add(part)
    assert trace.events().messages == [TraceMessage("data", "a", "b", 7, 9, 1, 3)]


def test_ends_without_the_other_one_have_a_limit(monkeypatch):
    """The oldest are given up."""
    monkeypatch.setattr(trial_trace, "MAX_UNPAIRED", 2)
    trace = TrialTrace(BEGIN)
    for number in (1, 2, 3):
        trace.add(sent(5, number))
    for number in (2, 3, 1):
        trace.add(received(9, number))
    assert [message.id for message in trace.events().messages] == [2, 3]


def test_the_load_generators_spans_are_taken_in():
    """They come with its progress."""
    trace = TrialTrace(BEGIN)
    trace.add_progress(replace(progress(0.5), trace=TraceEvents([Span("sender 0", "serialize", NS, NS + 5)])))
    assert trace.events().spans == [Span("sender 0", "serialize", 0, 5)]


def test_a_trace_has_a_greatest_size(monkeypatch):
    """Later events are left out."""
    monkeypatch.setattr(trial_trace, "MAX_EVENTS", 3)
    trace = TrialTrace(BEGIN)
    for n in range(9):
        trace.add(TraceEvents([Span("w", "processing", NS + n, NS + n + 1)]))
    assert len(trace.events().spans) == 4
