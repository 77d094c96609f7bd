"""Which messages of a session were done already: contiguous ranges above a floor, so that it does not grow with what passed."""

from bisect import bisect_right

MAX_RANGES = 4096
"""Kept of one session; with a floor that rises there are few, without one the lowest are forgotten first."""


class Seen:
    """Numbers that were added, as disjoint ranges in ascending order."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._floor = 0

    def __len__(self) -> int:
        """How many ranges are kept."""
        return len(self._starts)

    def raise_floor(self, floor: int) -> None:
        """Forget everything below: it is done, and will not come again but as an echo."""
        if floor <= self._floor:
            return
        self._floor = floor
        drop = bisect_right(self._ends, floor)
        del self._starts[:drop], self._ends[:drop]
        if self._starts and self._starts[0] < floor:
            self._starts[0] = floor

    def missing(self, first: int, end: int, *, floor: bool = True) -> list[tuple[int, int]]:
        """The parts of first ... end - 1 that were not added, as (first, end); what is below the floor counts as added, or not."""
        at, parts = max(first, self._floor) if floor else first, list[tuple[int, int]]()
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
        """Add first ... first + count - 1; what was there already stays."""
        start, end = max(first, self._floor), first + count
        if end <= start:
            return
        left = bisect_right(self._ends, start - 1)
        right = bisect_right(self._starts, end)
        if left < right:
            start, end = min(start, self._starts[left]), max(end, self._ends[right - 1])
        self._starts[left:right], self._ends[left:right] = [start], [end]
        excess = max(0, len(self._starts) - MAX_RANGES)
        del self._starts[:excess], self._ends[:excess]
