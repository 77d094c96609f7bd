"""The messages of the benchmark and their verification, the same for HarmonicIO and for the baseline.

A message is its number (8 bytes) and a known filler. A receiver compares every byte of the filler and adds the
numbers up, so that a loss, a repetition or a changed byte is found.
"""

import math
import mmap
import time
from collections.abc import Mapping
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from frameworks.harmonicio.engine.pe import Batch, of_batch

NUMBER = Struct("<Q")
TOTALS = Struct("<QQQ")
"""Messages, sum of their numbers modulo 2^64, corrupted messages."""
_TIMED = Struct("<Qd")
_MODULUS = 2**64
_SET_BYTES, _MAX_MESSAGES = 32 * 10**6, 65536


def make_messages(size: int) -> list[bytes]:
    """Return a set of messages of `size` bytes, numbered from 0, which is sent repeatedly."""
    count = max(2, min(_MAX_MESSAGES, _SET_BYTES // size))
    filler = _filler(size).tobytes()
    return [NUMBER.pack(number) + filler for number in range(count)]


class PayloadCheck:
    """Verifies batches of messages of one length."""

    def __init__(self, size: int) -> None:
        self._size, self._filler = size, _filler(size)
        self.count = self.total = self.corrupted = 0

    def verify(self, payload: memoryview, count: int) -> None:
        """Verify `count` messages in one buffer."""
        matrix = np.frombuffer(payload, dtype=np.uint8).reshape(count, self._size)
        numbers = matrix[:, : NUMBER.size].copy().view("<u8")
        word = f"u{math.gcd(self._size, NUMBER.size)}"  # as wide as the length allows, which takes less memory
        same = matrix.view(word)[:, NUMBER.size // np.dtype(word).itemsize :] == self._filler.view(word)
        self.corrupted += 0 if same.all() else int(count - np.count_nonzero(same.all(axis=1)))
        self.total = (self.total + int(numbers.sum(dtype=np.uint64))) % _MODULUS
        self.count += count

    def is_exact(self, rounds: int) -> bool:
        """Return whether count and sum are those of `rounds` whole sets, and no message was corrupted."""
        each = len(make_messages(self._size))
        expected = (rounds * each, rounds * each * (each - 1) // 2 % _MODULUS, 0)
        return (self.count, self.total, self.corrupted) == expected


@of_batch
class Sink:
    """The no-op function of the benchmark: verifies, and writes its totals to a file that the benchmark reads."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._check = PayloadCheck(int(settings["size"]))
        self._record = map_file(Path(str(settings["record"])))

    def __call__(self, batch: Batch) -> None:
        """Verify a batch and write the totals."""
        check = self._check
        check.verify(batch.payload, len(batch))
        TOTALS.pack_into(self._record, 0, check.count, check.total, check.corrupted)


@of_batch
class LatencyRecorder:
    """Records the latency of each message, from its due time to here, at its number in a file of doubles (seconds)."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._record = map_file(Path(str(settings["record"])))

    def __call__(self, batch: Batch) -> None:
        """Write the latency of each message."""
        for message in batch:
            number, due = _TIMED.unpack_from(message)
            _SECONDS.pack_into(self._record, number * _SECONDS.size, time.monotonic() - due)


_SECONDS = Struct("<d")


def make_timed_message(number: int, due: float, size: int) -> bytes:
    """Return a message of `size` bytes for LatencyRecorder; `due` is monotonic seconds."""
    return _TIMED.pack(number, due).ljust(size, b".")


def map_file(file: Path) -> mmap.mmap:
    """Return a file mapped into memory, shared between processes."""
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), 0)


def _filler(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return np.random.default_rng(1807).integers(0, 256, size - NUMBER.size, dtype=np.uint8)
