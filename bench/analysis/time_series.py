"""The counters of a trial under way, in columns: a trial of half an hour holds a megabyte of them, not ten."""

from array import array
from bisect import bisect_left, bisect_right

from bench.model.measurement import Series


class TimeSeries:
    """Rows of (seconds, offered, sent, processed), in ascending order of time."""

    def __init__(self) -> None:
        self._at = array("d")
        self._offered, self._sent, self._processed = array("q"), array("q"), array("q")

    def add(self, at: float, offered: int, sent: int, processed: int) -> None:
        self._at.append(at)
        self._offered.append(offered)
        self._sent.append(sent)
        self._processed.append(processed)

    @property
    def last_at(self) -> float:
        """The time of the last row; -1 where there is none."""
        return self._at[-1] if self._at else -1.0

    @property
    def backlog(self) -> int:
        """Offered and not processed, by the last row."""
        return self._offered[-1] - self._processed[-1] if self._at else 0

    def least_backlog(self, begin: float, end: float) -> int | None:
        """The smallest backlog of the rows of a span, its ends included; None where it has none."""
        rows = slice(bisect_left(self._at, begin), bisect_right(self._at, end))
        left = (
            offered - processed for offered, processed in zip(self._offered[rows], self._processed[rows], strict=True)
        )
        return min(left, default=None)

    def series(self) -> Series:
        """All rows, as a measurement keeps them."""
        return Series(list(self._at), list(self._offered), list(self._sent), list(self._processed))
