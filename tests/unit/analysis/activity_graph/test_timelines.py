"""The timeline of a worker is complete: gaps have an activity, and a nested activity interrupts the outer one."""

import pytest

from bench.analysis.activity_graph.events import Events, make_events
from bench.analysis.activity_graph.timelines import complete_timelines, flatten_nested
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import ACTIVITIES, Span, TraceMessage

WINDOWS = Windows(0, 100, 1)


def rows(events: Events, min_gap: int = 0) -> list[tuple[str, str, int, int]]:
    """Return worker, activity, begin and end of each segment."""
    found = complete_timelines(events, WINDOWS, min_gap)
    columns = zip(found.worker, found.activity, found.begin, found.end, strict=True)
    return [(events.workers[w], ACTIVITIES[a], int(begin), int(end)) for w, a, begin, end in columns]


def work(begin, end, activity="processing", worker="A"):
    return Span(worker, activity, begin, end)


def test_a_nested_activity_interrupts_the_outer_one():
    """The outer one goes on behind it."""
    spans = [work(0, 100), work(20, 40, "gc"), work(30, 35, "serialize")]
    found = flatten_nested(make_events(spans).spans)
    names = [ACTIVITIES[code] for code in found.activity]
    assert list(zip(names, found.begin.tolist(), found.end.tolist(), strict=True)) == [
        ("processing", 0, 20), ("gc", 20, 30), ("serialize", 30, 35), ("gc", 35, 40), ("processing", 40, 100),
    ]  # fmt: skip


def test_of_two_that_overlap_the_later_one_counts():
    """From its begin on, and the earlier one until then."""
    found = flatten_nested(make_events([work(0, 60), work(40, 100, "gc")]).spans)
    assert found.end.tolist() == [40, 100]


def test_the_same_times_of_several_workers_do_not_overlap():
    """Each has a timeline of its own."""
    found = flatten_nested(make_events([work(0, 100), work(0, 100, worker="B")]).spans)
    assert found.end.tolist() == [100, 100]


@pytest.mark.parametrize(
    ("messages", "activity"),
    [
        ([], "unknown"),
        ([TraceMessage("data", "B", "A", 5, 60)], "waiting"),
        ([TraceMessage("data", "A", "B", 40, 70), TraceMessage("data", "B", "A", 5, 60)], "waiting"),
        ([TraceMessage("data", "B", "A", 5, 40), TraceMessage("data", "B", "A", 5, 60)], "unknown"),
    ],
    ids=["nothing", "a receipt ends it", "from sending to receipt", "from receipt to receipt"],
)
def test_a_gap_is_waiting_if_only_a_message_ends_it(messages, activity):
    """Any other gap is unknown."""
    events = make_events([work(0, 40), work(60, 100)], messages)
    assert ("A", activity, 40, 60) in rows(events)


def test_a_short_gap_belongs_to_the_activity_before_it():
    """Instead of being an activity of its own."""
    events = make_events([work(0, 40), work(42, 100, "serialize")])
    assert rows(events, min_gap=5) == [
        ("A", "processing", 0, 40), ("A", "processing", 40, 42), ("A", "serialize", 42, 100),
    ]  # fmt: skip


def test_a_short_gap_behind_a_message_belongs_to_the_activity_behind_it():
    """Nothing is known of the time before the message."""
    events = make_events([work(42, 100)], [TraceMessage("data", "B", "A", 0, 40)])
    assert [row for row in rows(events, min_gap=5) if row[0] == "A"] == [
        ("A", "waiting", 0, 40), ("A", "processing", 40, 42), ("A", "processing", 42, 100),
    ]  # fmt: skip


def test_a_gap_between_two_messages_is_an_edge_however_short_it_is():
    """Two messages that a worker passes on at once stay apart."""
    events = make_events(
        [work(0, 40), work(44, 100)], [TraceMessage("data", "A", "B", 41, 70), TraceMessage("data", "B", "A", 5, 43)]
    )
    assert ("A", "waiting", 41, 43) in rows(events, min_gap=50)


def test_a_timeline_ends_at_boundaries_of_windows():
    """A worker that begins late and ends early is unknown before and after."""
    assert rows(make_events([work(20, 80)])) == [
        ("A", "unknown", 0, 20), ("A", "processing", 20, 80), ("A", "unknown", 80, 100),
    ]  # fmt: skip


def test_empty_spans_are_left_out():
    """They take no time."""
    assert rows(make_events([work(0, 100), work(50, 50, "gc")])) == [("A", "processing", 0, 100)]


def test_a_trace_that_is_too_long_for_64_bits_is_refused():
    """The message has workers and seconds."""
    spans = [Span(str(n), "processing", 0, 2**61) for n in range(9)]
    with pytest.raises(ValueError, match="9 workers"):
        complete_timelines(make_events(spans), WINDOWS)
