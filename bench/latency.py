"""Latency histograms in HdrHistogram's bucket layout (2 significant digits, microseconds), vectorised and mergeable."""

import numpy as np
from numpy.typing import NDArray

_SUB_BITS = 8  # 256 sub-buckets: a value is known to better than 1 %
_HALF = 1 << (_SUB_BITS - 1)
_LARGEST_US = 2**42  # about 51 days
_BUCKETS = (43 - _SUB_BITS + 1) * _HALF + _HALF

Sparse = list[tuple[int, int]]


class Histogram:
    """Counts of durations; a duration of 0 or below counts as the smallest bucket and, when below, in `negative`."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BUCKETS, dtype=np.int64)
        self.negative = 0

    def record(self, seconds: NDArray[np.float64]) -> None:
        """Count every one of these durations."""
        us = np.rint(seconds * 1e6).astype(np.int64)
        self.negative += int(np.count_nonzero(us < 0))
        self.counts += np.bincount(_index(np.clip(us, 0, _LARGEST_US)), minlength=_BUCKETS)

    def add(self, sparse: Sparse) -> None:
        """Add another histogram's counts."""
        for index, count in sparse:
            self.counts[index] += count

    def sparse(self) -> Sparse:
        """The buckets that hold anything, as (index, count); what `add` takes."""
        held = np.flatnonzero(self.counts)
        return [(int(index), int(self.counts[index])) for index in held]

    def __len__(self) -> int:
        return int(self.counts.sum())

    def quantile(self, share: float) -> float | None:
        """The duration in seconds that `share` of all do not exceed; None when the histogram is empty."""
        total = len(self)
        if total == 0:
            return None
        rank = max(1, int(np.ceil(share * total)))
        return _highest(int(np.searchsorted(np.cumsum(self.counts), rank))) * 1e-6


def _index(us: NDArray[np.int64]) -> NDArray[np.int64]:
    """HdrHistogram's index: 256 equal buckets first, then 128 for every doubling."""
    exponent = np.frexp((us | (2 * _HALF - 1)).astype(np.float64))[1] - _SUB_BITS
    index: NDArray[np.int64] = (exponent << (_SUB_BITS - 1)) + (us >> exponent)
    return index


def _highest(index: int) -> int:
    """The largest number of microseconds that falls into a bucket."""
    exponent = max(0, (index >> (_SUB_BITS - 1)) - 1)
    return ((index - (exponent << (_SUB_BITS - 1)) + 1) << exponent) - 1
