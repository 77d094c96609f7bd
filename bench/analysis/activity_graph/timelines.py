"""The complete timeline of each worker: from its first event to its last one, each moment has one activity."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench.analysis.activity_graph.events import UNKNOWN, WAITING, Codes, Events, Messages, Spans, Times
from bench.analysis.activity_graph.windows import Windows

MIN_GAP_NS = 1_000_000
"""A gap that is shorter belongs to the activity beside it."""
NO_OPERATOR = -1
_MAX_KEY = 2**63 - 1


def complete_timelines(events: Events, windows: Windows, min_gap: int = MIN_GAP_NS) -> Spans:
    """Return the activities of all workers without gaps and overlaps, by worker, then by time.

    An activity that begins within another one interrupts it. Messages cut activities in two. A gap that ends with the
    receipt of a message is *waiting*, unless it begins with one; any other is *unknown*. Timelines begin and end at
    boundaries of windows.

    Args:
        events: of a trace.
        windows: of the analysis; they may begin after the first event, and end before the last one.
        min_gap: shortest gap in nanoseconds that is an activity of its own.
    """
    spans, messages = flatten_nested(events.spans), events.messages
    worker, time = _points(spans, messages)
    if not len(worker):
        return spans
    keys = _Keys(worker, time, windows)
    nodes = _sort_unique(np.concatenate([keys.of(worker, time), keys.sentinels(worker, time)]))
    of_worker, _ = keys.split(nodes)
    within = of_worker[1:] == of_worker[:-1]
    left, right = nodes[:-1][within], nodes[1:][within]
    segments, covered = _find_activities(spans, keys, left, right)
    return _label_gaps(segments, covered, _Ends(keys, messages, left, right), min_gap)


def _find_activities(
    spans: Spans, keys: "_Keys", left: NDArray[np.int64], right: NDArray[np.int64]
) -> tuple[Spans, NDArray[np.bool_]]:
    """Return the segments between keys with the activities of the spans that cover them, and whether one does."""
    worker, begin = keys.split(left)
    bare = Spans(worker, np.full(len(left), UNKNOWN), np.full(len(left), NO_OPERATOR), begin, keys.split(right)[1])
    if not len(spans):
        return bare, np.zeros(len(left), dtype=np.bool_)
    span = np.searchsorted(keys.of(spans.worker, spans.begin), left, side="right") - 1
    covered = (span >= 0) & (spans.worker[span] == worker) & (spans.end[span] > begin)
    activity = np.where(covered, spans.activity[span], bare.activity)
    operator = np.where(covered, spans.operator[span], bare.operator)
    return replace(bare, activity=activity, operator=operator), covered


def flatten_nested(spans: Spans) -> Spans:
    """Return spans of which no two of one worker overlap, by worker, then by time; empty ones are left out."""
    spans = spans.select(spans.end > spans.begin)
    spans = spans.select(np.lexsort((-spans.end, spans.begin, spans.worker)))
    overlaps = (spans.worker[1:] == spans.worker[:-1]) & (spans.begin[1:] < spans.end[:-1])
    return _interrupt_outer(spans) if overlaps.any() else spans


def _interrupt_outer(spans: Spans) -> Spans:
    """Return the innermost span of each moment; the one that began last is the innermost."""
    pieces: list[tuple[int, int, int]] = []
    edges = [0, *(np.flatnonzero(np.diff(spans.worker)) + 1).tolist(), len(spans)]
    begins, ends = spans.begin.tolist(), spans.end.tolist()
    for first, last in pairwise(edges):
        _interrupt_worker(range(first, last), begins, ends, pieces)
    row, begin, end = np.array(pieces, dtype=np.int64).reshape(len(pieces), 3).T
    return replace(spans.select(row), begin=begin, end=end)


def _interrupt_worker(rows: range, begins: list[int], ends: list[int], pieces: list[tuple[int, int, int]]) -> None:
    """Add the pieces (row, begin, end) of one worker's spans, which are in the order of their begins."""
    active: list[int] = []
    at = begins[rows[0]]
    for row, until in zip((*rows, None), (*begins[rows.start : rows.stop], None), strict=True):
        while active and (until is None or at < until):
            end = ends[active[-1]] if until is None else min(ends[active[-1]], until)
            if end > at:
                pieces.append((active[-1], at, end))
                at = end
            if ends[active[-1]] <= at:
                active.pop()
        if row is not None and until is not None:
            at = until
            active.append(row)


def _points(spans: Spans, messages: Messages) -> tuple[Codes, Times]:
    """Return worker and time of every event."""
    worker = np.concatenate([spans.worker, spans.worker, messages.sender, messages.receiver])
    return worker, np.concatenate([spans.begin, spans.end, messages.sent, messages.received])


class _Keys:
    """Numbers that order events by worker, then by time."""

    def __init__(self, worker: Codes, time: Times, windows: Windows) -> None:
        self._windows = windows
        self._low = int(windows.floor(time.min(keepdims=True))[0])
        self._stride = int(windows.ceil(time.max(keepdims=True))[0]) - self._low + 1
        if (int(worker.max()) + 1) * self._stride > _MAX_KEY:
            raise ValueError(f"a trace of {worker.max() + 1} workers over {self._stride / 1e9:.3g} s is too long")

    def of(self, worker: Codes, time: Times) -> NDArray[np.int64]:
        """Return the numbers of events."""
        return worker * self._stride + (time - self._low)

    def split(self, keys: NDArray[np.int64]) -> tuple[Codes, Times]:
        """Return worker and time of events."""
        worker = keys // self._stride
        return worker, keys - worker * self._stride + self._low

    def sentinels(self, worker: Codes, time: Times) -> NDArray[np.int64]:
        """Return the boundaries of windows around the events of each worker."""
        size = int(worker.max()) + 1
        first, last = np.full(size, _MAX_KEY), np.full(size, -_MAX_KEY)
        np.minimum.at(first, worker, time)
        np.maximum.at(last, worker, time)
        present = np.flatnonzero(first <= last)
        begin, end = self._windows.floor(first[present]), self._windows.ceil(last[present])
        return np.concatenate([self.of(present, begin), self.of(present, end)])


class _Ends:
    """The ends of segments that are ends of messages."""

    def __init__(self, keys: _Keys, messages: Messages, left: NDArray[np.int64], right: NDArray[np.int64]) -> None:
        self._sends = np.sort(keys.of(messages.sender, messages.sent))
        self._receives = np.sort(keys.of(messages.receiver, messages.received))
        self._left, self._right = left, right

    def begin_with_receive(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these segments begin with the receipt of a message."""
        return _is_member(self._left[rows], self._receives)

    def end_with_receive(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these segments end with the receipt of a message."""
        return _is_member(self._right[rows], self._receives)

    def begin_with_message(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these segments begin with the sending or the receipt of a message."""
        return self.begin_with_receive(rows) | _is_member(self._left[rows], self._sends)

    def end_with_message(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of these segments end with the sending or the receipt of a message."""
        return self.end_with_receive(rows) | _is_member(self._right[rows], self._sends)


def _label_gaps(segments: Spans, covered: NDArray[np.bool_], ends: _Ends, min_gap: int) -> Spans:
    """Return the segments with an activity for each one that no span covers."""
    activity, operator = segments.activity.copy(), segments.operator.copy()
    gaps = np.flatnonzero(~covered)
    activity[gaps] = np.where(ends.end_with_receive(gaps) & ~ends.begin_with_receive(gaps), WAITING, UNKNOWN)
    small = gaps[segments.end[gaps] - segments.begin[gaps] < min_gap]
    before, after = small - 1, np.minimum(small + 1, len(segments) - 1)
    joins_before = _are_covered(segments, covered, small, np.maximum(before, 0)) & ~ends.begin_with_message(small)
    joins_after = _are_covered(segments, covered, small, after) & ~ends.end_with_message(small) & ~joins_before
    for joins, beside in ((joins_before, before), (joins_after, after)):
        activity[small[joins]] = segments.activity[beside[joins]]
        operator[small[joins]] = segments.operator[beside[joins]]
    return replace(segments, activity=activity, operator=operator)


def _are_covered(
    segments: Spans, covered: NDArray[np.bool_], rows: NDArray[np.intp], beside: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return whether the segment beside each row is of the same worker, and covered by a span."""
    both: NDArray[np.bool_] = covered[beside] & (segments.worker[beside] == segments.worker[rows])
    return both


def _sort_unique(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the different keys, sorted; several times as fast as np.unique, which hashes them first."""
    keys = np.sort(keys)
    different: NDArray[np.int64] = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    return different


def _is_member(keys: NDArray[np.int64], sorted_keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which keys are in a sorted array."""
    if not len(sorted_keys):
        return np.zeros(len(keys), dtype=np.bool_)
    place = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    found: NDArray[np.bool_] = sorted_keys[place] == keys
    return found
