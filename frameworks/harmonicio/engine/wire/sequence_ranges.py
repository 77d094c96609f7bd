"""A set of sequence numbers as ranges above a low watermark, so that it does not grow with time."""

from bisect import bisect_right

MAX_RANGES = 4096
"""Ranges kept of one session. Few are needed while the watermark advances; without one the lowest are dropped first."""


class SequenceRanges:
    """Added sequence numbers as disjoint ranges in ascending order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._low_watermark = 0

    def __len__(self) -> int:
        """Return the number of ranges."""
        return len(self._starts)

    def advance_low_watermark(self, low_watermark: int) -> None:
        """Drop ranges below the low watermark; anything older is a duplicate."""
        if low_watermark <= self._low_watermark:
            return
        self._low_watermark = low_watermark
        drop = bisect_right(self._ends, low_watermark)
        del self._starts[:drop], self._ends[:drop]
        if self._starts and self._starts[0] < low_watermark:
            self._starts[0] = low_watermark

    def missing(self, first: int, end: int, *, use_low_watermark: bool = True) -> list[tuple[int, int]]:
        """Return the parts of first ... end - 1 that were not added, as (first, end).

        Args:
            first: first number asked for.
            end: one beyond the last number asked for.
            use_low_watermark: whether numbers below the low watermark count as added.
        """
        at, parts = max(first, self._low_watermark) if use_low_watermark else first, list[tuple[int, int]]()
        index = bisect_right(self._ends, at)
        while at < end and index < len(self._starts) and self._starts[index] < end:
            if at < self._starts[index]:
                parts.append((at, self._starts[index]))
            at = self._ends[index]
            index += 1
        if at < end:
            parts.append((at, end))
        return parts

    def add(self, first: int, count: int) -> None:
        """Add first ... first + count - 1; numbers that were added before stay."""
        start, end = max(first, self._low_watermark), first + count
        if end <= start:
            return
        left = bisect_right(self._ends, start - 1)
        right = bisect_right(self._starts, end)
        if left < right:
            start, end = min(start, self._starts[left]), max(end, self._ends[right - 1])
        self._starts[left:right], self._ends[left:right] = [start], [end]
        excess = max(0, len(self._starts) - MAX_RANGES)
        del self._starts[:excess], self._ends[:excess]
