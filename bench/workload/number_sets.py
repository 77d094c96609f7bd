"""Sets of sequence numbers: their short form in a report, and the exact set that the harness adds them up to.

A set is a list of runs (first, step, count), and of bit masks where runs would be longer. A batch is one run as a rule:
of step 1, or of the number of partitions. The harness keeps one bit a number, and nothing of a full block.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

MAX_RUNS = 32
"""More runs than that are encoded anew when sets are joined."""
BLOCK = 2**20
"""Numbers in a block of the harness's set, 128 KiB of bits."""
MAX_BLOCKS = 1024
"""Blocks of one producer that are neither empty nor full: 128 MiB."""
MAX_MASK_SHARE = 64
"""Bits of a mask for each number; runs are shorter where it would have more."""

Run = tuple[int, int, int]
Bits = NDArray[np.uint8]


class NumberSet(Struct, frozen=True, array_like=True):
    """Sequence numbers; repeated ones are in it once."""

    runs: list[Run] = field(default_factory=list)
    """(first, step, count)"""
    masks: list[tuple[int, bytes]] = field(default_factory=list)
    """(first, bits): bit i, the lowest of a byte first, stands for `first` + i; `first` is a multiple of 8"""


def encode_numbers(seq: NDArray[np.uint64]) -> NumberSet:
    """Return the set of these numbers, which are below 2^63, in its shortest form."""
    if len(seq) <= 1:
        return NumberSet([(int(seq[0]), 1, 1)] if len(seq) else [])
    numbers = seq.astype(np.int64)
    steps = numbers[1:] - numbers[:-1]
    if steps[0] > 0 and (steps == steps[0]).all():
        return NumberSet([(int(numbers[0]), int(steps[0]), len(numbers))])
    first = int(numbers.min()) // 8 * 8
    span = int(numbers.max()) + 1 - first
    if span <= MAX_MASK_SHARE * len(numbers):
        bits = np.zeros(span, dtype=np.uint8)
        bits[numbers - first] = 1
        return NumberSet([], [(first, np.packbits(bits, bitorder="little").tobytes())])
    numbers = np.sort(numbers)
    begins = np.concatenate(([0], np.flatnonzero(np.diff(numbers) > 1) + 1))
    counts = (numbers[np.append(begins[1:] - 1, -1)] - numbers[begins] + 1).tolist()
    return NumberSet([(at, 1, count) for at, count in zip(numbers[begins].tolist(), counts, strict=True)])


def join_sets(sets: Iterable[NumberSet]) -> NumberSet:
    """Return the union of sets; runs that continue each other become one."""
    parts = list(sets)
    runs = _join_runs(run for part in parts for run in part.runs)
    masks = [mask for part in parts for mask in part.masks]
    if len(runs) > MAX_RUNS:
        numbers = [np.arange(first, first + step * count, step, dtype=np.uint64) for first, step, count in runs]
        joined = encode_numbers(np.concatenate(numbers))
        runs, masks = joined.runs, [*masks, *joined.masks]
    return NumberSet(runs, masks)


def _join_runs(runs: Iterable[Run]) -> list[Run]:
    ends: dict[tuple[int, int], int] = {}
    joined: list[Run] = []
    for first, step, count in runs:
        place = ends.pop((step, first), None)
        if place is None:
            place = len(joined)
            joined.append((first, step, count))
        else:
            joined[place] = (joined[place][0], step, joined[place][2] + count)
        ends[step, first + step * count] = place
    return joined


class ReceivedNumbers:
    """The exact set of the numbers that arrived of one producer, as long as it fits into MAX_BLOCKS."""

    def __init__(self) -> None:
        self.exact = True
        self._bits: dict[int, Bits] = {}
        self._counts: dict[int, int] = {}

    def add(self, numbers: NumberSet) -> int:
        """Add numbers, and return how many of them are new.

        Once they would take too much memory, `exact` is False and nothing is added any more.
        """
        pieces = [*(piece for run in numbers.runs for piece in _run_pieces(run)), *numbers.masks]
        return sum(self._add_mask(first, np.frombuffer(bits, dtype=np.uint8)) for first, bits in pieces)

    def count_below(self, end: int) -> int:
        """Return how many different numbers below `end` arrived."""
        whole, rest = divmod(end, BLOCK)
        below = sum(count for block, count in self._counts.items() if block < whole)
        if self._counts.get(whole) == BLOCK:
            return below + rest
        bits = self._bits.get(whole)
        if bits is None:
            return below
        return below + int(np.unpackbits(bits, count=rest, bitorder="little").sum(dtype=np.int64))

    def _add_mask(self, first: int, mask: Bits) -> int:
        place, new = first // 8, 0
        while len(mask) and self.exact:
            block, at = divmod(place, BLOCK // 8)
            part, mask = mask[: BLOCK // 8 - at], mask[BLOCK // 8 - at :]
            place += len(part)
            if self._counts.get(block) != BLOCK:
                new += self._add_to_block(block, at, part)
        return new

    def _add_to_block(self, block: int, at: int, mask: Bits) -> int:
        if block not in self._bits:
            if len(self._bits) >= MAX_BLOCKS:
                self.exact = False
                return 0
            self._bits[block], self._counts[block] = np.zeros(BLOCK // 8, dtype=np.uint8), 0
        before = self._bits[block][at : at + len(mask)]
        new = int(np.bitwise_count(mask & ~before).sum(dtype=np.int64))
        self._counts[block] += new
        before |= mask
        if self._counts[block] == BLOCK:
            del self._bits[block]
        return new


class RestartedNumbers:
    """The exact set of the numbers of one producer, and how many of them came again after a restart."""

    def __init__(self) -> None:
        self.received, self.again = ReceivedNumbers(), 0
        self._restart, self._since = 0, ReceivedNumbers()

    def add(self, numbers: NumberSet, restart: int) -> None:
        """Add numbers that came after so many restarts."""
        if restart != self._restart:
            self._restart, self._since = restart, ReceivedNumbers()
        new = self.received.add(numbers)
        if restart:
            self.again += self._since.add(numbers) - new


def _run_pieces(run: Run) -> Iterator[tuple[int, bytes]]:
    """Yield a run as masks of at most a block each."""
    first, step, count = run
    end = first + step * (count - 1) + 1
    while first < end:
        base, stop = first // 8 * 8, min(end, (first // BLOCK + 1) * BLOCK)
        bits = np.zeros(stop - base, dtype=np.uint8)
        bits[first - base :: step] = 1
        yield base, np.packbits(bits, bitorder="little").tobytes()
        first += -(-(stop - first) // step) * step
