"""Windows of equal length that follow one another (tumbling windows); times in nanoseconds."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.analysis.activity_graph.events import Codes, Times


@dataclass(frozen=True)
class Windows:
    """`count` windows of `length` nanoseconds each, the first of which begins at `begin`."""

    begin: int
    length: int
    count: int

    def __post_init__(self) -> None:
        if self.length <= 0 or self.count < 0:
            raise ValueError(f"windows need a length above 0, and a count: {self}")

    def floor(self, times: Times) -> Times:
        """Return the last boundary of windows at or before each time."""
        return self.begin + (times - self.begin) // self.length * self.length

    def ceil(self, times: Times) -> Times:
        """Return the first boundary of windows at or after each time."""
        return self.begin - (self.begin - times) // self.length * self.length

    def parts(self, parts: int) -> Iterator[tuple[int, "Windows"]]:
        """Yield the windows in at most so many parts, each with the number of its first window."""
        size = max(1, -(-self.count // max(1, parts)))
        for first in range(0, self.count, size):
            yield first, Windows(self.begin + first * self.length, self.length, min(size, self.count - first))


@dataclass(frozen=True)
class Pieces:
    """Parts of intervals, each within one window (the projection of Def. 5)."""

    row: NDArray[np.intp]
    """of the interval"""
    window: Codes
    begin: Times
    end: Times


def cut_at_boundaries(begin: Times, end: Times, windows: Windows) -> Pieces:
    """Return the parts of intervals in each window that they touch, in the order of the intervals, then of time."""
    first = np.maximum((begin - windows.begin) // windows.length, 0)
    last = np.minimum((end - 1 - windows.begin) // windows.length, windows.count - 1)
    counts = np.maximum(last - first + 1, 0)
    row = np.repeat(np.arange(len(begin)), counts)
    earlier = np.repeat(np.cumsum(counts) - counts, counts)
    window = first[row] + np.arange(len(row)) - earlier
    boundary = windows.begin + window * windows.length
    return Pieces(row, window, np.maximum(begin[row], boundary), np.minimum(end[row], boundary + windows.length))
