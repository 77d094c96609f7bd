"""Critical participation is that of the paper's figures and of graphs worked out by hand, and always adds up to one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.activity_graph import participation as module
from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import Participation, compute_participation
from bench.analysis.activity_graph.summaries import sum_by_activity
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import Span, TraceMessage


def span(worker, begin, end, operator="", activity="processing"):
    return Span(worker, activity, begin, end, operator)


def message(sender, sent, receiver, received, kind="data"):
    return TraceMessage(kind, sender, receiver, sent, received)


def participate(spans, messages, end, count=1) -> Participation:
    """Return the critical participation in `count` windows from 0 to `end`, whose gaps all count."""
    return compute_participation(make_events(spans, messages), Windows(0, end // count, count), min_gap=0)


def by_name(found: Participation) -> dict[str, float]:
    """Return the share of each operator, and of each channel as "sender>receiver"."""
    names = [f"{group.worker}>{group.receiver}" if group.receiver else group.operator for group in found.groups]
    sums = dict.fromkeys(names, 0.0)
    for name, share in zip(names, found.mean.tolist(), strict=True):
        sums[name] += share
    return sums


def test_kat_1_shares_of_two_paths():
    """Five edges with 2, 1, 1, 1 and 2 of two paths: the reference implementation's own example."""
    spans = [span("w", 0, 2, "1-2"), span("w", 2, 3, "2-3"), span("w", 3, 6, "3-4"), span("w", 6, 10, "4-5")]
    shares = by_name(participate(spans, [message("w", 2, "w", 6)], 10))
    expected = {"1-2": 0.20, "2-3": 0.05, "w>w": 0.20, "3-4": 0.15, "4-5": 0.40}
    assert shares == pytest.approx(expected)


KAT_2 = (
    [
        span("W1", 0, 4, "a"), Span("W1", "serialize", 4, 6, "b"), span("W1", 9, 10, "c"),
        span("W2", 5, 8, "d"), span("W2", 8, 10, "e"),
    ],
    [message("W1", 4, "W2", 5), message("W2", 8, "W1", 9)],
)  # fmt: skip


def test_kat_2_what_leads_only_into_a_wait_is_not_critical():
    """Gaps that end with a message are waiting; the serialization, 2 of 12 busy seconds, has no share."""
    found = participate(*KAT_2, 10)
    shares = {name: share for name, share in by_name(found).items() if name}
    expected = {"a": 0.4, "W1>W2": 0.1, "d": 0.3, "e": 0.1, "W2>W1": 0.05, "c": 0.05, "b": 0.0}
    assert shares == pytest.approx(expected)
    assert sum_by_activity(found) == pytest.approx({"processing": 0.85, "data": 0.15, "serialize": 0, "waiting": 0})


def test_shares_of_figure_2():
    """A graph of 6 paths and length 5: an edge with 2 of them has 0.066, one with all of them 0.2."""
    spans = [
        span("A", 0, 1), span("A", 1, 4, activity="waiting"), span("A", 4, 5), span("B", 0, 2),
        span("B", 2, 3, "g'-h'"), span("B", 3, 5), span("C", 0, 1), span("C", 1, 5, activity="waiting"),
    ]  # fmt: skip
    sent = [message("A", 1, "B", 2), message("C", 1, "B", 2), message("B", 3, "A", 4)]
    shares = by_name(participate(spans, sent, 5))
    assert shares["A>B"] == pytest.approx(2 / 6 / 5)
    assert shares["g'-h'"] == pytest.approx(0.2)


def test_centralities_of_figure_3():
    """Edges with 6, 9, 6 and none of 9 paths."""
    spans = [
        span("W", 0, 1), span("W", 1, 2, "x-u"), span("W", 2, 3, "u-v"), span("W", 3, 4, "v-z"), span("W", 4, 6),
        span("P", 0, 1, "a-b"), span("P", 1, 5, activity="waiting"), span("P", 5, 6),
        span("Q", 0, 1), span("Q", 1, 2, "c-d"), span("Q", 2, 4, activity="waiting"), span("Q", 4, 6),
    ]  # fmt: skip
    sent = [message("P", 0, "W", 1), message("Q", 1, "W", 2), message("W", 3, "Q", 4), message("W", 4, "P", 5)]
    shares = by_name(participate(spans, sent, 6))
    centrality = {name: share * 9 * 6 for name, share in shares.items()}
    assert [centrality[name] for name in ("x-u", "u-v", "v-z", "a-b", "c-d")] == pytest.approx([6, 9, 6, 0, 0])


def test_workers_that_send_nothing_have_equal_parts():
    """Each is one path; what one does half of the time has a quarter of the shares of two."""
    found = participate([span("A", 0, 10), span("B", 0, 5), span("B", 5, 10, activity="idle(source)")], [], 10)
    assert sum_by_activity(found) == pytest.approx({"processing": 0.75, "idle(source)": 0.25})


def test_windows_without_a_path_are_not_connected():
    """They have no shares, and the mean is that of the other ones."""
    found = participate([span("A", 0, 5), span("A", 5, 15, activity="waiting"), span("A", 15, 20)], [], 20, 4)
    assert found.connected.tolist() == [True, False, False, True]
    assert found.critical.sum(axis=1).tolist() == [1, 0, 0, 1]


def test_what_crosses_a_boundary_counts_in_both_windows():
    """A message under way from 8 to 14 is an edge of 2 before the boundary at 10, and one of 4 behind it."""
    spans = [span("A", 0, 8), span("A", 8, 20, activity="waiting"), span("B", 0, 1), span("B", 14, 20)]
    found = participate(spans, [message("A", 8, "B", 14)], 20, 2)
    channel = [group.receiver for group in found.groups].index("B")
    assert found.critical[:, channel].tolist() == pytest.approx([0.2, 0.4])


def test_a_message_that_arrives_before_it_was_sent_takes_no_time():
    """Clocks of two hosts may say so."""
    spans = [span("A", 0, 50), span("A", 50, 100, activity="waiting"), span("B", 50, 100)]
    found = participate(spans, [message("A", 50, "B", 40)], 100)
    assert found.critical.sum() == pytest.approx(1)


def test_a_trace_without_events_has_no_groups():
    """Nor a connected window."""
    found = participate([], [], 10, 2)
    assert (found.groups, found.connected.tolist()) == ((), [False, False])


@st.composite
def traces(draw):
    """Draw spans and messages of up to 3 workers from 0 to 12."""
    times, worker = st.integers(0, 12), st.sampled_from("ABC")
    activity = st.sampled_from(["processing", "serialize", "waiting", "unknown"])
    spans = draw(st.lists(st.tuples(worker, activity, times, times), max_size=8))
    messages = draw(st.lists(st.tuples(worker, worker, times, times), max_size=5))
    return (
        [Span(who, what, min(a, b), max(a, b), "map") for who, what, a, b in spans],
        [TraceMessage("control", one, other, min(a, b), max(a, b)) for one, other, a, b in messages],
    )


@given(traces(), st.sampled_from([1, 2, 3, 4]))
def test_the_sum_of_each_connected_window_is_one(trace, count):
    """Whatever the trace is (Eq. 5); the others have nothing."""
    found = participate(*trace, 12, count)
    assert found.critical.sum(axis=1) == pytest.approx(found.connected.astype(float), abs=1e-9)


@given(traces(), st.data())
def test_splitting_an_activity_changes_no_sum(trace, data):
    """Two spans that follow each other are as good as one."""
    spans, messages = trace
    whole = [one for one in spans if one.end - one.begin >= 2]
    if not whole:
        return
    chosen = data.draw(st.sampled_from(whole))
    middle = (chosen.begin + chosen.end) // 2
    halves = [
        Span(chosen.worker, chosen.activity, *part, "map") for part in ((chosen.begin, middle), (middle, chosen.end))
    ]
    others = [one for one in spans if one is not chosen]
    before = sum_by_activity(participate([*others, chosen], messages, 12))
    if not _overlap(chosen, others):
        assert sum_by_activity(participate([*others, *halves], messages, 12)) == pytest.approx(before)


def _overlap(chosen, others):
    return any(one.worker == chosen.worker and one.begin < chosen.end and chosen.begin < one.end for one in others)


@given(traces())
def test_relabelled_workers_have_the_same_shares(trace):
    """Names have no meaning."""
    spans, messages = trace
    names = {"A": "C", "B": "A", "C": "B"}
    renamed = [Span(names[one.worker], one.activity, one.begin, one.end, one.operator) for one in spans]
    sent = [TraceMessage(m.kind, names[m.sender], names[m.receiver], m.sent, m.received) for m in messages]
    shares = dict(zip(*_groups_and_means(participate(spans, messages, 12)), strict=True))
    again = dict(zip(*_groups_and_means(participate(renamed, sent, 12)), strict=True))
    names[""] = ""
    assert again == pytest.approx({(a, o, names[w], names[r]): share for (a, o, w, r), share in shares.items()})


def _groups_and_means(found):
    return [
        (group.activity, group.operator, group.worker, group.receiver) for group in found.groups
    ], found.mean.tolist()


@given(traces())
def test_parts_of_a_long_trace_give_what_all_of_it_gives(trace):
    """Windows are worked on a few at a time where there are many events."""
    whole = participate(*trace, 12, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_SEGMENTS_AT_ONCE", 2)
        parts = participate(*trace, 12, 4)
    assert parts.groups == whole.groups
    assert np.allclose(parts.critical, whole.critical)
    assert np.allclose(parts.busy_ns, whole.busy_ns)
