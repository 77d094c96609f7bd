"""The number of paths through each edge of an activity graph (Def. 8, Alg. 2), as logarithms: it exceeds any float."""

from dataclasses import dataclass
from math import exp, inf, log1p

import numpy as np
from numpy.typing import NDArray

from bench.analysis.activity_graph.events import Times

Nodes = NDArray[np.int64]
"""Numbers of nodes."""
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Paths:
    """The unblocked part of an activity graph; nodes of one worker in one window stand together, in order of time."""

    time: Times
    """of each node"""
    first: Marks
    """whether a node is the first of its worker in its window: a path may start there"""
    open_before: Marks
    """whether an unblocked local edge leads from the node before to a node"""
    tail: Nodes
    """of messages; a message takes at least one nanosecond"""
    head: Nodes

    def reverse(self) -> "Paths":
        """Return the graph with all edges turned round; node n becomes node -1 - n."""
        last = np.concatenate([self.first[1:], [True]])[::-1] if len(self.first) else self.first
        opens = np.concatenate([[False], self.open_before[1:][::-1]]) if len(self.first) else self.open_before
        highest = len(self.time) - 1
        return Paths(-self.time[::-1], last, opens, highest - self.head, highest - self.tail)


def count_paths(paths: Paths) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of the numbers of unblocked paths from the start nodes to each node, and on to end nodes.

    The number of paths through an edge is the product: of those to its tail, and those from its head.
    """
    return _count_from_start(paths), _count_from_start(paths.reverse())[::-1]


def _count_from_start(paths: Paths) -> NDArray[np.float64]:
    """Return the logarithms of the numbers of unblocked paths from the start nodes to each node.

    The number changes only at nodes that have other edges than an unblocked local one before them. Only these are
    looked at one by one, in order of time.
    """
    changes = ~paths.open_before
    changes[paths.head] = True
    place = np.cumsum(changes) - 1
    values: list[float] = np.where(paths.first[changes], 0.0, -inf).tolist()
    joined = np.flatnonzero(changes & paths.open_before)
    targets, sources = np.concatenate([joined, paths.head]), np.concatenate([joined - 1, paths.tail])
    order = np.argsort(paths.time[targets], kind="stable")
    for target, source in zip(place[targets[order]].tolist(), place[sources[order]].tolist(), strict=True):
        one, other = values[target], values[source]
        if one < other:
            one, other = other, one
        if other > -inf:
            one += log1p(exp(other - one))  # log(e^one + e^other)
        values[target] = one
    counts: NDArray[np.float64] = np.array(values, dtype=np.float64)[place]
    return counts
