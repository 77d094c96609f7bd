"""Critical participation from the two passes is that of a second program, which walks every path of the definition."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import compute_participation
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import Span, TraceMessage

END = 6
WORKERS = "ABC"
Node = tuple[str, int]
Edge = tuple[Node, Node, str]


@st.composite
def traces(draw):
    """Draw complete timelines of three workers from 0 to END, and up to three messages forward in time."""
    spans = []
    for worker in WORKERS:
        cuts = [0, *sorted(draw(st.sets(st.integers(1, END - 1), max_size=3))), END]
        for begin, end in pairwise(cuts):
            spans.append(Span(worker, draw(st.sampled_from(["processing", "serialize", "waiting"])), begin, end, "map"))
    worker, time = st.sampled_from(WORKERS), st.integers(0, END - 1)
    sent = []
    for one, other, at in draw(st.lists(st.tuples(worker, worker, time), max_size=3)):
        if one != other:
            sent.append(TraceMessage("data", one, other, at, draw(st.integers(at + 1, END))))
    return spans, sent


def edges_of(spans: list[Span], sent: list[TraceMessage]) -> list[Edge]:
    """Return the edges that are not blocked: activities, cut where a message begins or ends, and messages."""
    edges = []
    for worker in WORKERS:
        own = [one for one in spans if one.worker == worker]
        cuts = {one.begin for one in own} | {END}
        cuts |= {one.sent for one in sent if one.sender == worker}
        cuts |= {one.received for one in sent if one.receiver == worker}
        for begin, end in pairwise(sorted(cuts)):
            activity = next(one.activity for one in own if one.begin <= begin and end <= one.end)
            if activity != "waiting":
                edges.append(((worker, begin), (worker, end), activity))
    return edges + [((one.sender, one.sent), (one.receiver, one.received), "data") for one in sent]


def walk(edges: list[Edge], node: Node) -> list[tuple[int, ...]]:
    """Return the numbers of the edges of every path from a node to the end of the window."""
    if node[1] == END:
        return [()]
    return [(n, *rest) for n, (tail, head, _) in enumerate(edges) if tail == node for rest in walk(edges, head)]


@settings(max_examples=300)
@given(traces())
def test_the_shares_are_those_of_all_paths_walked_one_by_one(trace):
    """Each path has an equal part, and each of its edges the part of its length (Eq. 1 and 2)."""
    spans, sent = trace
    edges = edges_of(spans, sent)
    paths = [path for worker in WORKERS for path in walk(edges, (worker, 0))]
    walked = dict.fromkeys(("processing", "serialize", "data"), 0.0)
    for path in paths:
        for tail, head, activity in (edges[n] for n in path):
            walked[activity] += (head[1] - tail[1]) / END / len(paths)
    found = compute_participation(make_events(spans, sent), Windows(0, END, 1), min_gap=0)
    computed = dict.fromkeys(walked, 0.0)
    for group, share in zip(found.groups, found.mean.tolist(), strict=True):
        if group.activity != "waiting":
            computed[group.activity] += share
    assert found.connected.tolist() == [bool(paths)]
    assert computed == pytest.approx(walked, abs=1e-12)
