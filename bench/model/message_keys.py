"""Keys of messages: so many distinct ones, and a table of which message has which, drawn ahead of a run."""

from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

ENTRIES, EACH = 2**16, 16
"""Of the table, at least, and for each key; messages after its end go through it again."""
SHIFT = 10_007
"""Entries between two producers of one order."""


class Keys(Struct, frozen=True, forbid_unknown_fields=True):
    """How many distinct keys messages have, and how often each comes."""

    count: Annotated[int, Meta(ge=1, le=100_000)]
    choice: Literal["uniform", "zipf"] = "uniform"
    """all equally often, or the k-th one in proportion to 1/k^exponent"""
    exponent: Annotated[float, Meta(gt=0, le=5)] = 1.0
    """of zipf"""


class KeySequence(Struct, frozen=True):
    """Keys and the seed by which they are dealt out."""

    keys: Keys
    seed: int

    def lookup(self, producers: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of the key, 0 to count - 1, of each of the messages with these producers and numbers."""
        table = draw_key_table(self.keys, self.seed)
        places = (numbers + producers.astype(np.uint64) * np.uint64(SHIFT)) % np.uint64(len(table))
        found: NDArray[np.int32] = table[places.astype(np.int64)]
        return found


@lru_cache(maxsize=4)
def draw_key_table(keys: Keys, seed: int) -> NDArray[np.int32]:
    """The keys of the first messages; each key is in it at least once, and as often as its share asks for."""
    entries = max(ENTRIES, EACH * keys.count)
    weights = np.ones(keys.count) if keys.choice == "uniform" else 1 / np.arange(1, keys.count + 1) ** keys.exponent
    counts = np.maximum(1, np.rint(entries * weights / weights.sum())).astype(np.int64)
    table = np.repeat(np.arange(keys.count, dtype=np.int32), counts)
    np.random.default_rng([seed, 6]).shuffle(table)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=4)
def encode_keys(keys: Keys) -> tuple[bytes, ...]:
    """The keys as they travel."""
    return tuple(b"key-%d" % number for number in range(keys.count))
