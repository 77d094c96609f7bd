"""Keys of messages: a number of distinct keys, and a table, drawn before a run, that assigns them to messages."""

from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

ENTRIES, ENTRIES_PER_KEY = 2**16, 16
"""Minimal lengths of the table; messages beyond its end start again at its beginning."""
SHIFT = 10_007
"""Entries between the first messages of two producers."""


class Keys(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of distinct keys, and how often each of them occurs."""

    count: Annotated[int, Meta(ge=1, le=100_000)]
    choice: Literal["uniform", "zipf"] = "uniform"
    """all equally often, or the k-th one in proportion to 1/k^exponent"""
    exponent: Annotated[float, Meta(gt=0, le=5)] = 1.0
    """of zipf"""


class KeySequence(Struct, frozen=True):
    """The key of each message of a run, determined by a seed."""

    keys: Keys
    seed: int

    def lookup(self, producers: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the key, 0 to count - 1, of each message with these producers and sequence numbers; equal shapes."""
        table = draw_key_table(self.keys, self.seed)
        entries = (numbers + producers.astype(np.uint64) * np.uint64(SHIFT)) % np.uint64(len(table))
        keys: NDArray[np.int32] = table[entries.astype(np.int64)]
        return keys


@lru_cache(maxsize=4)
def draw_key_table(keys: Keys, seed: int) -> NDArray[np.int32]:
    """Return the keys of the first messages, read-only; each key is in it at least once, and else in proportion."""
    entries = max(ENTRIES, ENTRIES_PER_KEY * keys.count)
    weights = np.ones(keys.count) if keys.choice == "uniform" else 1 / np.arange(1, keys.count + 1) ** keys.exponent
    counts = np.maximum(1, np.rint(entries * weights / weights.sum())).astype(np.int64)
    table = np.repeat(np.arange(keys.count, dtype=np.int32), counts)
    np.random.default_rng([seed, 6]).shuffle(table)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=4)
def encode_keys(keys: Keys) -> tuple[bytes, ...]:
    """Return each key as the bytes that are sent."""
    return tuple(b"key-%d" % number for number in range(keys.count))
