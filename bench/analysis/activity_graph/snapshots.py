"""The program activity graphs of windows (Def. 6): nodes are events, edges are activities and messages."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.analysis.activity_graph.events import WAITING, Codes, Messages, Spans, Times
from bench.analysis.activity_graph.path_counts import Marks, Nodes, Paths, count_paths
from bench.analysis.activity_graph.windows import Pieces, Windows, cut_at_boundaries


@dataclass(frozen=True)
class Snapshots:
    """The graphs of several windows: local edges, then messages, each within its window."""

    windows: Windows
    paths: Paths
    node_window: Codes
    local: Pieces
    """parts of rows of the timelines"""
    messages: Pieces
    """parts of rows of the messages"""
    local_tail: Nodes
    """the head of a local edge is the next node"""
    waiting: Marks
    """whether a local edge is blocked"""


@dataclass(frozen=True)
class EdgeShares:
    """The critical participation of each edge (Eq. 3), and whether a window has a path from its begin to its end."""

    local: NDArray[np.float64]
    messages: NDArray[np.float64]
    connected: Marks


def make_snapshots(timelines: Spans, messages: Messages, windows: Windows) -> Snapshots:
    """Return the graphs of windows.

    Args:
        timelines: complete ones, by worker, then by time, that begin and end at boundaries of windows.
        messages: between workers; each is received at least a nanosecond after it was sent.
        windows: what lies outside of them is left out.
    """
    local = cut_at_boundaries(timelines.begin, timelines.end, windows)
    worker = timelines.worker[local.row]
    begins = np.ones(len(worker), dtype=np.bool_)
    begins[1:] = (worker[1:] != worker[:-1]) | (local.window[1:] != local.window[:-1])
    tail = np.arange(len(worker)) + np.cumsum(begins) - 1
    waiting = timelines.activity[local.row] == WAITING
    size = len(worker) + int(begins.sum())
    time, node_window = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    first, open_before = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    time[tail], time[tail + 1] = local.begin, local.end
    node_window[tail], node_window[tail + 1] = local.window, local.window
    first[tail[begins]] = True
    open_before[tail + 1] = ~waiting
    carried, message_tail, message_head = _attach_messages(messages, windows, local, worker, tail)
    paths = Paths(time, first, open_before, message_tail, message_head)
    return Snapshots(windows, paths, node_window, local, carried, tail, waiting)


def compute_edge_shares(snapshots: Snapshots) -> EdgeShares:
    """Return the critical participation of each edge: c(e) / N x its duration / that of the window (Eq. 3)."""
    paths, windows = snapshots.paths, snapshots.windows
    to, onward = count_paths(paths)
    ends = np.flatnonzero(np.concatenate([paths.first[1:], [True]])) if len(to) else np.zeros(0, dtype=np.int64)
    total = np.full(windows.count, -np.inf)
    np.logaddexp.at(total, snapshots.node_window[ends], to[ends])
    connected = np.isfinite(total)
    scale = np.where(connected, total, 0.0)  # without a path, all counts are those of no path: -inf

    def shares(tail: Nodes, head: Nodes, pieces: Pieces) -> NDArray[np.float64]:
        central = np.exp(to[tail] + onward[head] - scale[pieces.window])
        found: NDArray[np.float64] = central * (pieces.end - pieces.begin) / windows.length
        return found

    local = shares(snapshots.local_tail, snapshots.local_tail + 1, snapshots.local)
    return EdgeShares(
        np.where(snapshots.waiting, 0.0, local), shares(paths.tail, paths.head, snapshots.messages), connected
    )


def _attach_messages(
    messages: Messages, windows: Windows, local: Pieces, worker: Codes, tail: Nodes
) -> tuple[Pieces, Nodes, Nodes]:
    """Return the parts of messages in each window, and the nodes that they connect.

    What crosses an edge of a window is projected to it (Def. 5). A part whose worker has no event in the window is left
    out.
    """
    parts = cut_at_boundaries(messages.sent, messages.received, windows)
    stride = windows.length * windows.count + 1

    def keys(of: Codes, time: Times) -> NDArray[np.int64]:
        return of * stride + (time - windows.begin)

    sent, known_tail = _look_up(keys(messages.sender[parts.row], parts.begin), keys(worker, local.begin))
    received, known_head = _look_up(keys(messages.receiver[parts.row], parts.end), keys(worker, local.end))
    known = known_tail & known_head
    kept = Pieces(parts.row[known], parts.window[known], parts.begin[known], parts.end[known])
    return kept, tail[sent[known]], tail[received[known]] + 1


def _look_up(keys: NDArray[np.int64], sorted_keys: NDArray[np.int64]) -> tuple[NDArray[np.intp], Marks]:
    """Return the place of each key in a sorted array, and whether it is there."""
    if not len(sorted_keys):
        return np.zeros(len(keys), dtype=np.intp), np.zeros(len(keys), dtype=np.bool_)
    place = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return place, sorted_keys[place] == keys
