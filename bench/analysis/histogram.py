"""Latency histograms in HdrHistogram's bucket layout (2 significant digits, microseconds), vectorised and mergeable."""

import zlib
from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.model.measurement import Buckets

_SUB_BITS = 8  # 256 sub-buckets: a value is known to better than 1 %
_HALF = 1 << (_SUB_BITS - 1)
_MAX_US = 2**42  # about 51 days
_BUCKETS = (43 - _SUB_BITS + 1) * _HALF + _HALF

_FEW = 32
"""Up to this number, durations are counted one by one."""

Sparse = list[tuple[int, int]]
"""Filled buckets: (index, count)."""


class Histogram:
    """Counts of durations by bucket; `negative` counts those below 0, which are also counted in the smallest bucket."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BUCKETS, dtype=np.int64)
        self.negative = 0

    def record(self, seconds: NDArray[np.float64]) -> None:
        """Count durations, given in seconds."""
        us = np.rint(seconds * 1e6).astype(np.int64)
        self.negative += int(np.count_nonzero(us < 0))
        self.counts += np.bincount(_index(np.clip(us, 0, _MAX_US)), minlength=_BUCKETS)

    def add(self, sparse: Sparse) -> None:
        """Add another histogram's counts."""
        for index, count in sparse:
            self.counts[index] += count

    def sparse(self) -> Sparse:
        """Return the filled buckets as (index, count), the argument of `add`."""
        filled = np.flatnonzero(self.counts)
        return [(int(index), int(self.counts[index])) for index in filled]

    def __len__(self) -> int:
        return int(self.counts.sum())

    def quantile(self, share: float) -> float | None:
        """Return the duration in seconds that `share` (0 to 1) of all do not exceed; None when the histogram is empty.

        It is the upper end of the bucket of rank ceil(share * count): at most 1 % too long.
        """
        total = len(self)
        if total == 0:
            return None
        rank = max(1, int(np.ceil(share * total)))
        return _highest(int(np.searchsorted(np.cumsum(self.counts), rank))) * 1e-6


def sparse_of(seconds: NDArray[np.float64]) -> tuple[Sparse, int]:
    """Return the filled buckets of a histogram of these durations, and the number of negative ones.

    A few durations are counted without a histogram: 10 us instead of 190 us with cold caches, as beside costly work.

    Args:
        seconds: Durations in seconds.
    """
    if len(seconds) > _FEW:
        histogram = Histogram()
        histogram.record(seconds)
        return histogram.sparse(), histogram.negative
    us = [round(value * 1e6) for value in seconds.tolist()]
    return sparse_sum([[(_index_of(min(max(value, 0), _MAX_US)), 1) for value in us]]), sum(value < 0 for value in us)


def sparse_sum(parts: Iterable[Sparse]) -> Sparse:
    """Return the filled buckets of the sum of several histograms."""
    counts: dict[int, int] = {}
    for part in parts:
        for index, count in part:
            counts[index] = counts.get(index, 0) + count
    return sorted(counts.items())


def shift_sparse(sparse: Sparse, seconds: float) -> Sparse:
    """Return the filled buckets of the same durations, each longer by so many seconds; none becomes shorter than 0.

    A bucket moves as a whole, by its middle: a quantile of the result is at most 1.2 % too long, or 0.4 % too short.
    """
    if not sparse or seconds == 0:
        return sparse
    indices, counts = np.array(sparse, dtype=np.int64).T
    exponents = np.maximum(0, (indices >> (_SUB_BITS - 1)) - 1)
    lowest = (indices - (exponents << (_SUB_BITS - 1))) << exponents
    middles = lowest + ((1 << exponents) >> 1)
    moved, inverse = np.unique(_index(np.clip(middles + round(seconds * 1e6), 0, _MAX_US)), return_inverse=True)
    sums = np.bincount(inverse, weights=counts).astype(np.int64)
    return list(zip(moved.tolist(), sums.tolist(), strict=True))


def _index_of(us: int) -> int:
    """Return the index of one duration, as `_index` does for many."""
    exponent = (us | (2 * _HALF - 1)).bit_length() - _SUB_BITS
    return (exponent << (_SUB_BITS - 1)) + (us >> exponent)


def _index(us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return HdrHistogram's bucket indices of microseconds: 256 equal buckets first, then 128 for every doubling."""
    exponent = np.frexp((us | (2 * _HALF - 1)).astype(np.float64))[1] - _SUB_BITS
    index: NDArray[np.int64] = (exponent << (_SUB_BITS - 1)) + (us >> exponent)
    return index


def _highest(index: int) -> int:
    """Return the largest number of microseconds that falls into a bucket."""
    exponent = max(0, (index >> (_SUB_BITS - 1)) - 1)
    return ((index - (exponent << (_SUB_BITS - 1)) + 1) << exponent) - 1


class Percentile(Struct, frozen=True):
    """A duration `value` in seconds that the share `share` did not exceed, with its 95 % interval."""

    share: float
    value: float
    low: float
    high: float


_SHARES = ((0, (0.5, 1.0)), (10, (0.9,)), (100, (0.99,)), (1000, (0.999,)), (10_000, (0.9999,)))
"""Least number of durations for which a percentile is reported (the rule of Elastic's Rally)."""


def percentiles(histogram: Histogram) -> list[Percentile]:
    """Return the percentiles that the count supports, in ascending order, in seconds.

    The 95 % interval is that of order statistics: the p-quantile of n independent durations lies between those of ranks
    np -+ 1.96 sqrt(np(1 - p)) in 95 of 100 samples (Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2).
    Durations in one queue depend on each other, so the real uncertainty is larger. The interval of the maximum is the
    maximum itself.
    """
    count = len(histogram)
    shares = sorted(share for least, group in _SHARES if count >= max(1, least) for share in group)
    return [_percentile(histogram, share, count) for share in shares]


def _percentile(histogram: Histogram, share: float, count: int) -> Percentile:
    width = 1.96 * float(np.sqrt(share * (1 - share) / count))
    low, value, high = (histogram.quantile(min(1.0, max(0.0, s))) or 0.0 for s in (share - width, share, share + width))
    return Percentile(share, value, low, high)


def hgrm_text(histogram: Histogram) -> str:
    """Return HdrHistogram's percentile distribution, the text of an .hgrm file; values in milliseconds."""
    filled = np.flatnonzero(histogram.counts)
    total, running = len(histogram), np.cumsum(histogram.counts[filled])
    lines = ["       Value     Percentile TotalCount 1/(1-Percentile)", ""]
    for index, so_far in zip(filled, running, strict=True):
        share = so_far / total
        tail = f"{1 / (1 - share):14.2f}" if share < 1 else "           inf"
        lines.append(f"{_highest(int(index)) / 1000:12.3f} {share:14.12f} {so_far:10d} {tail}")
    centres = np.array([(_highest(int(i)) + _highest(int(i) - 1) + 1) / 2 if i else 0.0 for i in filled]) / 1000
    mean = float((centres * histogram.counts[filled]).sum() / total) if total else 0.0
    spread = float(np.sqrt(((centres - mean) ** 2 * histogram.counts[filled]).sum() / total)) if total else 0.0
    longest = _highest(int(filled[-1])) / 1000 if total else 0.0
    lines += [
        f"#[Mean    = {mean:12.3f}, StdDeviation   = {spread:12.3f}]",
        f"#[Max     = {longest:12.3f}, Total count    = {total:12d}]",
        f"#[Buckets = {43 - _SUB_BITS + 1:12d}, SubBuckets     = {2 * _HALF:12d}]",
    ]
    return "\n".join(lines) + "\n"


OPEN_SECONDS, BLOCK_SECONDS = 5, 15
"""The latest seconds that stay uncompressed; and the number of seconds that are compressed at a time."""
KINDS = ("due", "sent", "processing")
"""Latency from a message's due time, and from its sending, to the end of its processing; and the duration of the
processing itself."""


def histogram_of(buckets: Buckets, kind: str, begin: float = 0.0, end: float = float("inf")) -> Histogram:
    """Return the histogram of the durations of one of KINDS in the seconds from `begin` to `end` (exclusive)."""
    histogram = Histogram()
    rows = zip(buckets.second, buckets.kind, buckets.bucket, buckets.count, strict=True)
    histogram.add(
        [(bucket, count) for second, row_kind, bucket, count in rows if row_kind == kind and begin <= second < end]
    )
    return histogram


class HistogramsPerSecond:
    """Histograms of each second of a trial, which may last for hours.

    Only filled buckets are kept, and all but the latest seconds are compressed.

    At 5,000 messages/s a second has a thousand filled buckets: 100 kB as dictionaries, 10 kB as arrays, 1 kB
    compressed.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str], dict[int, int]] = {}
        self._blocks: list[bytes] = []
        self._latest = self._packed = 0

    def add(self, second: int, kind: str, sparse: Sparse) -> None:
        """Add filled buckets to the histogram of one of KINDS in a second since the start of the trial."""
        self._latest = max(self._latest, second)
        if self._latest >= self._packed + BLOCK_SECONDS + OPEN_SECONDS:
            self._pack(self._latest - OPEN_SECONDS)
        counts = self._counts.setdefault((second, kind), {})
        for bucket, count in sparse:
            counts[bucket] = counts.get(bucket, 0) + count

    def buckets(self) -> Buckets:
        """Return the filled buckets of all seconds, the earliest second first."""
        self._pack(self._latest + 1)
        rows = (
            np.concatenate([_unpack_columns(block) for block in self._blocks], axis=1)
            if self._blocks
            else np.zeros((4, 0), np.int64)
        )
        keys, counts = _ROW @ rows[:3], rows[3]
        distinct, inverse = np.unique(keys, return_inverse=True)  # a late count is in a later block
        totals = np.bincount(inverse, weights=counts, minlength=len(distinct)).astype(np.int64)
        seconds, rest = np.divmod(distinct, _ROW[0])
        kinds, buckets = np.divmod(rest, _ROW[1])
        return Buckets(seconds.tolist(), [KINDS[kind] for kind in kinds.tolist()], buckets.tolist(), totals.tolist())

    def _pack(self, before: int) -> None:
        """Compress the seconds earlier than `before`."""
        keys = sorted(key for key in self._counts if key[0] < before)
        rows = [
            (key[0], KINDS.index(key[1]), bucket, count)
            for key in keys
            for bucket, count in sorted(self._counts.pop(key).items())
        ]
        self._packed = before
        if rows:
            self._blocks.append(_pack_columns(np.array(rows, dtype=np.int64).T))


_ROW = np.array([4 * _BUCKETS, _BUCKETS, 1], dtype=np.int64)
"""Factors that map (second, number of the kind, bucket) to one integer key, ordered alike."""


def _pack_columns(columns: NDArray[np.int64]) -> bytes:
    """Return columns of integers compressed to a few bytes a row: most differ little from their predecessor."""
    return zlib.compress(np.diff(columns, axis=1, prepend=0).tobytes())


def _unpack_columns(block: bytes) -> NDArray[np.int64]:
    """Return the four columns that `_pack_columns` compressed."""
    columns: NDArray[np.int64] = np.cumsum(np.frombuffer(zlib.decompress(block), dtype=np.int64).reshape(4, -1), axis=1)
    return columns
