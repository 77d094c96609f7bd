"""The messages of the benchmark and their verification: the same for HarmonicIO and for the bare socket.

A message is its number (8 bytes), then a filler that is known. A receiver compares every byte of the filler and adds the numbers
up, so that a loss, a repetition or a changed byte is found.
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
ACCOUNT = Struct("<QQQ")
"""Messages, sum of their numbers modulo 2^64, messages that are not as they should be."""
_CLOCK = Struct("<Qd")
_MODULUS = 2**64
_SET_BYTES, _MAX_MESSAGES = 32 * 10**6, 65536


def messages_of(size: int) -> list[bytes]:
    """A set of messages of that length, numbered from 0; it is sent again and again."""
    count = max(2, min(_MAX_MESSAGES, _SET_BYTES // size))
    filler = _filler(size).tobytes()
    return [NUMBER.pack(number) + filler for number in range(count)]


class Check:
    """Verifies batches of messages of one length."""

    def __init__(self, size: int) -> None:
        self._size, self._filler = size, _filler(size)
        self.count = self.total = self.wrong = 0

    def look(self, payload: memoryview, count: int) -> None:
        """Verify `count` messages that lie one behind the other."""
        matrix = np.frombuffer(payload, dtype=np.uint8).reshape(count, self._size)
        numbers = matrix[:, : NUMBER.size].copy().view("<u8")
        word = f"u{math.gcd(self._size, NUMBER.size)}"  # as wide as the length allows: less memory is touched
        same = matrix.view(word)[:, NUMBER.size // np.dtype(word).itemsize :] == self._filler.view(word)
        self.wrong += 0 if same.all() else int(count - np.count_nonzero(same.all(axis=1)))
        self.total = (self.total + int(numbers.sum(dtype=np.uint64))) % _MODULUS
        self.count += count

    def is_exact(self, rounds: int) -> bool:
        """Whether so many whole sets came, as far as count and sum tell, and nothing was changed."""
        each = len(messages_of(self._size))
        return (self.count, self.total, self.wrong) == (rounds * each, rounds * each * (each - 1) // 2 % _MODULUS, 0)


@of_batch
class Sink:
    """The no-op of the benchmark: verifies, and keeps its account in a file that the benchmark reads."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._check = Check(int(settings["size"]))
        self._account = mapped(Path(str(settings["account"])))

    def __call__(self, batch: Batch) -> None:
        check = self._check
        check.look(batch.payload, len(batch))
        ACCOUNT.pack_into(self._account, 0, check.count, check.total, check.wrong)


@of_batch
class Clock:
    """Keeps for each message, by its number, the seconds from when it was sent (and was due) until it is here."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._account = mapped(Path(str(settings["account"])))

    def __call__(self, batch: Batch) -> None:
        for message in batch:
            number, due = _CLOCK.unpack_from(message)
            _SECONDS.pack_into(self._account, number * _SECONDS.size, time.monotonic() - due)


_SECONDS = Struct("<d")


def timed(number: int, due: float, size: int) -> bytes:
    """A message for Clock."""
    return _CLOCK.pack(number, due).ljust(size, b".")


def mapped(file: Path) -> mmap.mmap:
    """A file in memory, shared between processes."""
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), 0)


def _filler(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return np.random.default_rng(1807).integers(0, 256, size - NUMBER.size, dtype=np.uint8)
