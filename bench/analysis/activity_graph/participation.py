"""Critical participation of the activities of a trace in each window, and the conventional profile beside it."""

from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.analysis.activity_graph.events import WAITING, Codes, Events, Messages, Spans
from bench.analysis.activity_graph.path_counts import Marks
from bench.analysis.activity_graph.snapshots import EdgeShares, Snapshots, compute_edge_shares, make_snapshots
from bench.analysis.activity_graph.timelines import MIN_GAP_NS, complete_timelines
from bench.analysis.activity_graph.windows import Windows
from bench.model.trace import ACTIVITIES, MESSAGE_KINDS

MAX_SEGMENTS_AT_ONCE = 1_000_000
"""Segments of timelines in the windows that are worked on at a time: it bounds the memory."""
_LABELS = (*ACTIVITIES, *MESSAGE_KINDS)


class EdgeGroup(Struct, frozen=True):
    """Edges that are added up: of one activity and operator of a worker, or of messages between two workers."""

    activity: str
    """of a message, its kind"""
    operator: str
    worker: str
    """that does it, or sends it"""
    receiver: str = ""
    """of messages"""


@dataclass(frozen=True)
class Participation:
    """The part of each group in each window; arrays have a row for each window, and a column for each group."""

    windows: Windows
    groups: tuple[EdgeGroup, ...]
    critical: NDArray[np.float64]
    """critical participation (Eq. 4); the sum of a row is 1 where the window is connected (Eq. 5), otherwise 0"""
    busy_ns: NDArray[np.float64]
    """time of local activities other than waiting: the conventional profile"""
    connected: Marks
    """of each window: whether a path leads from its begin to its end"""

    @property
    def mean(self) -> NDArray[np.float64]:
        """Return the critical participation of each group, as the mean of all connected windows; zeros without any."""
        rows = self.critical[self.connected]
        mean: NDArray[np.float64] = rows.mean(axis=0) if len(rows) else np.zeros(len(self.groups))
        return mean


def compute_participation(events: Events, windows: Windows, min_gap: int = MIN_GAP_NS) -> Participation:
    """Return the critical participation of each activity, operator, worker and channel in each window.

    The time is linear in the number of events, but for sorting.

    Args:
        events: of a trace.
        windows: of the analysis.
        min_gap: shortest gap between two activities in nanoseconds that is an activity of its own.
    """
    messages = events.messages
    events = replace(events, messages=replace(messages, received=np.maximum(messages.received, messages.sent + 1)))
    timelines = complete_timelines(events, windows, min_gap)
    sums = _Sums(events, timelines, windows)
    for first, part in windows.parts(1 + len(timelines) // MAX_SEGMENTS_AT_ONCE):
        snapshots = make_snapshots(timelines, events.messages, part)
        sums.add(first, snapshots, compute_edge_shares(snapshots))
    return sums.participation()


class _Sums:
    """Sums of edges by window and group."""

    def __init__(self, events: Events, timelines: Spans, windows: Windows) -> None:
        self._events, self._timelines, self._windows = events, timelines, windows
        self._local, self._messages = self._local_codes(timelines), self._message_codes(events.messages)
        self._critical: dict[int, NDArray[np.float64]] = {}
        self._busy: dict[int, NDArray[np.float64]] = {}
        self._connected = np.zeros(windows.count, dtype=np.bool_)

    def add(self, first: int, snapshots: Snapshots, shares: EdgeShares) -> None:
        """Add the edges of windows, of which the first has the number `first`."""
        count, local, carried = snapshots.windows.count, snapshots.local, snapshots.messages
        self._connected[first : first + count] = shares.connected
        codes, window = self._local[local.row], local.window + first
        self._add_up(self._critical, codes, window, shares.local)
        self._add_up(self._critical, self._messages[carried.row], carried.window + first, shares.messages)
        busy = np.where(self._timelines.activity[local.row] == WAITING, 0, local.end - local.begin)
        self._add_up(self._busy, codes, window, busy.astype(np.float64))

    def participation(self) -> Participation:
        """Return the sums."""
        none = np.zeros(self._windows.count)
        codes = sorted(self._critical)
        columns = [[sums.get(code, none) for code in codes] for sums in (self._critical, self._busy)]
        critical, busy = (
            np.array(column, dtype=np.float64).reshape(len(codes), self._windows.count).T for column in columns
        )
        return Participation(self._windows, tuple(self._group(code) for code in codes), critical, busy, self._connected)

    def _add_up(
        self, sums: dict[int, NDArray[np.float64]], codes: Codes, window: Codes, values: NDArray[np.float64]
    ) -> None:
        known, group = np.unique(codes, return_inverse=True)
        count = self._windows.count
        table = np.bincount(group * count + window, weights=values, minlength=len(known) * count).astype(np.float64)
        for code, row in zip(known.tolist(), table.reshape(len(known), count), strict=True):
            sums[code] = sums[code] + row if code in sums else row

    def _local_codes(self, timelines: Spans) -> Codes:
        return self._encode(timelines.activity, timelines.operator, timelines.worker, np.zeros_like(timelines.worker))

    def _message_codes(self, messages: Messages) -> Codes:
        label = messages.kind + len(ACTIVITIES)
        return self._encode(label, np.full(len(messages), -1), messages.sender, messages.receiver + 1)

    def _encode(self, label: Codes, operator: Codes, worker: Codes, receiver: Codes) -> Codes:
        """Return a number for each group."""
        workers, operators = len(self._events.workers), len(self._events.operators) + 1
        return ((label * operators + operator + 1) * workers + worker) * (workers + 1) + receiver

    def _group(self, code: int) -> EdgeGroup:
        workers, operators = self._events.workers, self._events.operators
        rest, receiver = divmod(code, len(workers) + 1)
        rest, worker = divmod(rest, len(workers))
        label, operator = divmod(rest, len(operators) + 1)
        return EdgeGroup(_LABELS[label], ("", *operators)[operator], workers[worker], ("", *workers)[receiver])
