"""The counters of a running trial in typed columns: half an hour takes one megabyte of memory instead of ten."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from bench.model.measurement import Series


class TimeSeries:
    """Rows of (seconds since the start, offered, sent, processed), in ascending order of time."""

    def __init__(self) -> None:
        self._at = array("d")
        self._offered, self._sent, self._processed = array("q"), array("q"), array("q")
        self.first_offered: tuple[float, float, int] | None = None
        """time of the row before the first one with offered messages, its own, and their number"""
        self.nothing_until: float | None = None
        """time of the last row before the first result; None without a result"""
        self.moved_at = 0.0
        """time of the last row in which more was processed than before"""

    def add(self, at: float, offered: int, sent: int, processed: int) -> None:
        """Append a row; `at` in seconds, the counters in messages since the start of the trial."""
        if offered and self.first_offered is None:
            self.first_offered = max(0.0, self.last_at), at, offered
        if processed and self.nothing_until is None:
            self.nothing_until = max(0.0, self.last_at)
        if processed > (self._processed[-1] if self._processed else 0):
            self.moved_at = at
        self._at.append(at)
        self._offered.append(offered)
        self._sent.append(sent)
        self._processed.append(processed)

    @property
    def last_at(self) -> float:
        """The time of the last row in seconds; -1 before the first row."""
        return self._at[-1] if self._at else -1.0

    @property
    def backlog(self) -> int:
        """Messages offered and not processed, at the last row."""
        return self._offered[-1] - self._processed[-1] if self._at else 0

    def min_backlog(self, begin: float, end: float) -> int | None:
        """Return the smallest backlog in messages from `begin` to `end` seconds, inclusive; None without rows."""
        return min(self._backlogs(begin, end), default=None)

    def max_backlog(self, begin: float, end: float) -> int | None:
        """Return the largest backlog in messages from `begin` to `end` seconds, inclusive; None without rows."""
        return max(self._backlogs(begin, end), default=None)

    def _backlogs(self, begin: float, end: float) -> Iterator[int]:
        rows = slice(bisect_left(self._at, begin), bisect_right(self._at, end))
        for offered, processed in zip(self._offered[rows], self._processed[rows], strict=True):
            yield offered - processed

    def series(self) -> Series:
        """Return all rows in the form that a measurement stores."""
        return Series(list(self._at), list(self._offered), list(self._sent), list(self._processed))
