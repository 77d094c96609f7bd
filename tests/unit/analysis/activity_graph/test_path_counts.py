"""Two passes count the paths through each edge: as many as there are, however many these are."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.path_counts import count_paths
from bench.analysis.activity_graph.snapshots import Snapshots, make_snapshots
from bench.analysis.activity_graph.timelines import complete_timelines
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import Span, TraceMessage


def random_graph(seed: int, workers: int, messages: int, end: int) -> Snapshots:
    """Return the graph of workers that now and then wait, and of messages that take up to 4."""
    chance, spans, sent = random.Random(seed), [], []
    for worker in range(workers):
        cuts = sorted({0, end, *(chance.randrange(end) for _ in range(end // 5))})
        for begin, stop in pairwise(cuts):
            spans.append(Span(str(worker), "waiting" if chance.random() < 0.2 else "processing", begin, stop))
    for _ in range(messages):
        at, (one, other) = chance.randrange(end - 4), chance.sample(range(workers), 2)
        sent.append(TraceMessage("data", str(one), str(other), at, at + chance.randint(1, 4)))
    events, windows = make_events(spans, sent), Windows(0, end, 1)
    return make_snapshots(complete_timelines(events, windows, 0), events.messages, windows)


def edges(graph: Snapshots) -> list[tuple[int, int]]:
    """Return tail and head of each edge that is not blocked."""
    local = zip(graph.local_tail.tolist(), (graph.local_tail + 1).tolist(), graph.waiting.tolist(), strict=True)
    messages = zip(graph.paths.tail.tolist(), graph.paths.head.tolist(), strict=True)
    return [*((tail, head) for tail, head, waiting in local if not waiting), *messages]


def start_and_end_nodes(graph: Snapshots) -> tuple[list[int], set[int]]:
    first = graph.paths.first
    return np.flatnonzero(first).tolist(), set(np.flatnonzero(np.append(first[1:], True)).tolist())


@pytest.mark.parametrize("seed", range(40))
def test_the_counts_are_those_of_all_paths_walked_one_by_one(seed):
    """In graphs of up to a dozen nodes."""
    graph = random_graph(seed, workers=2, messages=3, end=9)
    starts, ends = start_and_end_nodes(graph)
    found = edges(graph)
    walked = [0] * len(found)

    def walk(node: int, path: tuple[int, ...]) -> None:
        if node in ends:
            for edge in path:
                walked[edge] += 1
        for edge, (tail, head) in enumerate(found):
            if tail == node:
                walk(head, (*path, edge))

    for start in starts:
        walk(start, ())
    to, onward = np.exp(count_paths(graph.paths))
    assert [to[tail] * onward[head] for tail, head in found] == pytest.approx(walked)


@pytest.mark.parametrize("seed", range(3))
def test_logarithms_agree_with_exact_integers(seed):
    """Also where there are more paths than a float can hold."""
    graph = random_graph(seed, workers=6, messages=20_000, end=5000)
    starts, ends = start_and_end_nodes(graph)
    counts = [0] * len(graph.paths.time)
    for start in starts:
        counts[start] = 1
    for tail, head in sorted(edges(graph), key=lambda edge: graph.paths.time[edge[1]]):
        counts[head] += counts[tail]
    exact = [math.log(count) if count else -math.inf for count in counts]
    assert max(counts) > 10**310
    assert count_paths(graph.paths)[0].tolist() == pytest.approx(exact, rel=1e-12)
    onward = count_paths(graph.paths)[1][starts]
    assert np.logaddexp.reduce(onward) == pytest.approx(math.log(sum(counts[end] for end in ends)), rel=1e-12)
