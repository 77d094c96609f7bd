"""Message sizes that differ within a cell: a distribution, and the table of sizes that is drawn from it ahead of a run.

Message i of a producer has the size of entry i (modulo the table's length, shifted by the producer), so that whoever reads knows
which size a message must have, and nothing is drawn while messages are sent. The table is stratified: its entries are the middles
of equal shares of the distribution, dealt out so that every block of them holds all of it, in a seeded order. Its mean, the largest
size and each share of a choice are therefore the same for every seed.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.model.message_codec import MIN_MESSAGE_BYTES
from bench.units import Share, Size, limits, size_text

ENTRIES, BLOCK = 4096, 256
SHIFT = 1021
"""Entries between two producers of one order: they do not all send the largest message at once."""
LARGEST = "1 GB"
MIN_SHARE = 0.001
"""Of a choice: below it the table has too few entries to keep it."""
_P99 = NormalDist().inv_cdf(0.99)

OneSize = Annotated[Size, limits(least=f"{MIN_MESSAGE_BYTES} B", most=LARGEST)]


class Lognormal(Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes whose logarithm is normally distributed, told by two of their quantiles; none below 64 B."""

    median: OneSize
    p99: OneSize


class Mix(Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution as it is written in a scenario; exactly one of its keys."""

    lognormal: Lognormal | None = None
    choice: Mapping[str, Share] | None = None


class Sizes(Struct, frozen=True):
    """A distribution of message sizes in bytes: lognormal by median and p99, or a choice of (size, share) in ascending order."""

    median: int = 0
    p99: int = 0
    choice: tuple[tuple[int, float], ...] = ()

    @property
    def text(self) -> str:
        """What people read: "lognormal, median 10 kB, p99 1 MB", or "90 % 100 B, 10 % 1 MB"."""
        if self.choice:
            return ", ".join(f"{100 * share:g} % {size_text(size)}" for size, share in self.choice)
        return f"lognormal, median {size_text(self.median)}, p99 {size_text(self.p99)}"

    @property
    def written(self) -> dict[str, object]:
        """What a scenario says."""
        if self.choice:
            return {"choice": {f"{size} B": share for size, share in self.choice}}
        return {"lognormal": {"median": f"{self.median} B", "p99": f"{self.p99} B"}}

    @property
    def mean(self) -> int:
        """Of the table, in whole bytes."""
        return round(float(draw_size_table(self, 0).mean()))

    @property
    def largest(self) -> int:
        """Of the table."""
        return int(draw_size_table(self, 0).max())


class SizeSequence(Struct, frozen=True):
    """A distribution and the seed by which its table is put in order."""

    sizes: Sizes
    seed: int

    def lookup(self, producers: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The sizes of the messages with these producers and numbers."""
        places = (numbers + producers.astype(np.uint64) * np.uint64(SHIFT)) % np.uint64(ENTRIES)
        found: NDArray[np.int64] = draw_size_table(self.sizes, self.seed)[places.astype(np.int64)]
        return found


class MessageSize(Size):
    """A cell's message size: one number of bytes, or the mean of a distribution, which it then carries."""

    sizes: Sizes | None = None

    @classmethod
    def read(cls, text: object) -> "MessageSize":
        if not isinstance(text, Mapping):
            return cls(super().read(text))
        sizes = sizes_of(text)
        found = cls(sizes.mean)
        found.sizes = sizes
        return found

    @property
    def written(self) -> object:
        return self.sizes.written if self.sizes is not None else super().written

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True and getattr(other, "sizes", None) == self.sizes

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.sizes))


Wrong = tuple[tuple[str, ...], str, str]
"""The keys that lead to it within the mapping, what was found, what is allowed."""


def sizes_of(mix: Mapping[str, object]) -> Sizes:
    """The distribution that a scenario's mapping says; ValueError with what is wrong where it says none."""
    wrong = next(mistakes(mix), None)
    if wrong is not None:
        raise ValueError(f"{'.'.join(wrong[0])}: {wrong[1]}; allowed: {wrong[2]}")
    lognormal, choice = mix.get("lognormal"), mix.get("choice")
    if isinstance(lognormal, Mapping):
        return Sizes(Size.read(lognormal["median"]), Size.read(lognormal["p99"]))
    assert isinstance(choice, Mapping)
    return Sizes(
        choice=tuple(sorted((int(Size.read(size)), float(Share.read(share))) for size, share in choice.items()))
    )


def mistakes(mix: Mapping[str, object]) -> Iterator[Wrong]:
    """Each rule that a mapping of well-typed values breaks."""
    given = [name for name in ("lognormal", "choice") if mix.get(name) is not None]
    if len(given) != 1:
        yield (), " and ".join(given) or "neither", "exactly one of lognormal and choice"
        return
    inner = mix[given[0]]
    if given == ["choice"] and isinstance(inner, Mapping):
        yield from _choice_mistakes(inner)
    elif isinstance(inner, Mapping):
        yield from _lognormal_mistakes(int(Size.read(inner["median"])), int(Size.read(inner["p99"])))


def _choice_mistakes(choice: Mapping[str, object]) -> Iterator[Wrong]:
    sizes, least, most = [], Size.read(f"{MIN_MESSAGE_BYTES} B"), Size.read(LARGEST)
    for text, share in choice.items():
        try:
            size = Size.read(text)
        except ValueError:
            size = Size(0)
        if not least <= size <= most:
            yield ("choice", text), repr(text), f"{Size.allowed}, at least {size_text(least)}, at most {LARGEST}"
            return
        if size in sizes:
            yield ("choice", text), f"the size {size_text(size)} a second time", "each size once"
        if Share.read(share) < MIN_SHARE:
            yield ("choice", text), f"the share {Share.read(share):g}", f"at least {MIN_SHARE:.1%}"
        sizes.append(size)
    total = sum(Share.read(share) for share in choice.values())
    if abs(total - 1) > 1e-6:
        yield ("choice",), f"shares that add up to {total:g}", "shares that add up to 1, or 100 %"


def _lognormal_mistakes(median: int, p99: int) -> Iterator[Wrong]:
    if not median < p99:
        yield ("lognormal", "p99"), size_text(p99), f"a size above the median ({size_text(median)})"
        return
    largest = Sizes(median, p99).largest
    if largest > Size.read(LARGEST):
        found = f"{size_text(p99)}, so that the largest would have {size_text(largest)}"
        yield ("lognormal", "p99"), found, f"a largest of {LARGEST}"


@lru_cache(maxsize=8)
def draw_size_table(sizes: Sizes, seed: int) -> NDArray[np.int64]:
    """The sizes of the first messages, shape (ENTRIES,); afterwards they come again."""
    ordered, rows = _quantiles(sizes), ENTRIES // BLOCK
    strata, drawn = ordered.reshape(BLOCK, rows), np.random.default_rng([seed, 5])
    dealt = drawn.permuted(strata, axis=1).T  # one of each stratum to each block
    table: NDArray[np.int64] = drawn.permuted(dealt, axis=1).reshape(-1)
    table.setflags(write=False)
    return table


def _quantiles(sizes: Sizes) -> NDArray[np.int64]:
    """The sizes at the middles of ENTRIES equal shares, in ascending order."""
    shares = (np.arange(ENTRIES) + 0.5) / ENTRIES
    if sizes.choice:
        values, ends = np.array([size for size, _ in sizes.choice]), np.cumsum([share for _, share in sizes.choice])
        found: NDArray[np.int64] = values[np.minimum(np.searchsorted(ends, shares), len(values) - 1)]
        return found
    spread = np.log(sizes.p99 / sizes.median) / _P99
    normal = np.array([NormalDist().inv_cdf(float(share)) for share in shares])
    drawn: NDArray[np.int64] = np.maximum(MIN_MESSAGE_BYTES, np.rint(sizes.median * np.exp(spread * normal))).astype(
        np.int64
    )
    return drawn
