"""The fillers of messages: a table of rows of random characters, in which a message's number names its row.

The messages of a producer take the rows in turn, so that neighbours share nothing that a compressor finds within its
window. A row is made once: a writer copies it, and a reader compares it.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bench.model.message_header import HEADER_BYTES, Bytes

MAX_TEXT_ENTROPY = 0.8
"""Up to this entropy the filler is printable ASCII; above it is binary, which a line-based source cannot carry."""
TABLE_BYTES = 2**21
"""Of all rows, at least: the window of zstd at its default level, and little enough for a processor's cache."""
MIXED_BYTES = 2**23
"""Span over which the fillers of messages of mixed sizes begin."""
_BUFFER_FREE = 8192  # bytes; rows from this size on are only used one by one, so that no table of them is kept
_PRODUCER_STRIDE = 0x9E3779B1  # between the numbers of two producers' first messages
_GOLDEN, _WORD = 0x9E3779B1, 2**32

Numbers = NDArray[np.int64]


class Filler:
    """The fillers of a cell's messages of `size` bytes; of mixed sizes, `size` is the largest."""

    def __init__(self, size: int, entropy: float) -> None:
        self.body = max(0, size - HEADER_BYTES)
        self.count = (
            1 << max(1, (TABLE_BYTES // self.body).bit_length()) if self.body else 1
        )  # no division to locate one
        self._entropy = entropy

    @cached_property
    def rows(self) -> list[bytes]:
        """Each row as bytes."""
        return [row.tobytes() for row in (self.table if self.body < _BUFFER_FREE else self._draw_table())]

    @cached_property
    def checksums(self) -> NDArray[np.uint64]:
        """The CRC-32 of each row."""
        return np.array([crc32(row) for row in self.rows], dtype=np.uint64)

    @cached_property
    def table(self) -> Bytes:
        """All rows, of shape (count, body); for bodies of a few kB at most."""
        return self._draw_table()

    @cached_property
    def mixed(self) -> memoryview:
        """The bytes that the fillers of mixed sizes are slices of."""
        return memoryview(_draw(MIXED_BYTES + self.body, self._entropy).tobytes())

    def locate(self, producer: Numbers | int, seq: NDArray[np.uint64]) -> Numbers:
        """Return the row of each message, by its producer and sequence number."""
        rows: Numbers = (seq.astype(np.int64) + producer * _PRODUCER_STRIDE) & (self.count - 1)
        return rows

    def row(self, producer: int, seq: int) -> int:
        """Return the row of one message."""
        return (seq + producer * _PRODUCER_STRIDE) & (self.count - 1)

    def rows_from(self, producer: int, first: int, count: int) -> list[bytes]:
        """Return the fillers of the messages `first` to `first` + `count` - 1 of a producer, without a copy."""
        start = self.row(producer, first)
        found = self.rows[start : start + count]
        while len(found) < count:
            found += self.rows[: count - len(found)]
        return found

    def matrix_from(self, producer: int, first: int, count: int) -> Bytes:
        """Return the same as a matrix; without a copy unless the last row is passed."""
        start = self.row(producer, first)
        if start + count <= self.count:
            return self.table[start : start + count]
        return self.matrix(np.arange(start, start + count) & (self.count - 1))

    def matrix(self, rows: Numbers) -> Bytes:
        """Return these rows of the table as a matrix; rows at equal distances, the usual case, without a copy."""
        if len(rows) > 1:
            step = int(rows[1] - rows[0])
            if step > 0 and (rows[1:] - rows[:-1] == step).all():
                return self.table[int(rows[0]) : int(rows[-1]) + 1 : step]
        taken: Bytes = self.table.take(rows, axis=0)
        return taken

    def slices(self, producer: Numbers, seq: NDArray[np.uint64], sizes: Sequence[int]) -> list[memoryview]:
        """Return the fillers of messages of mixed sizes, in bytes with the header; slices of one buffer."""
        starts = _mixed_starts(producer, seq)
        view = self.mixed
        return [view[at : at + size - HEADER_BYTES] for at, size in zip(starts.tolist(), sizes, strict=True)]

    def _draw_table(self) -> Bytes:
        return _draw(self.count * self.body, self._entropy).reshape(self.count, self.body)


@lru_cache(maxsize=4)
def make_filler(size: int, entropy: float) -> Filler:
    """Return the fillers of messages of `size` bytes, drawn evenly from 2^(8 x entropy) symbols.

    Entropy 0 repeats one letter; 0.75 uses 64 printable characters; 1 uses every byte value but newline.
    """
    return Filler(size, entropy)


def _draw(count: int, entropy: float) -> Bytes:
    symbols = min(255, max(1, round(2 ** (8 * entropy))))
    if entropy <= MAX_TEXT_ENTROPY:
        alphabet = np.arange(126, 126 - symbols, -1, dtype=np.uint8)
    else:
        alphabet = np.array([value for value in range(256) if value != 10][:symbols], dtype=np.uint8)
    drawn: Bytes = alphabet.take(np.random.default_rng(20181).integers(0, symbols, count, dtype=np.uint8))
    return drawn


def _mixed_starts(producer: Numbers, seq: NDArray[np.uint64]) -> Numbers:
    """Return where the fillers begin: a sequence of low discrepancy, in which neighbours are far apart."""
    number = (seq.astype(np.int64) + producer * _PRODUCER_STRIDE) % _WORD
    starts: Numbers = (number.astype(np.uint64) * np.uint64(_GOLDEN) % np.uint64(_WORD)).astype(np.int64)
    return starts * MIXED_BYTES // _WORD
