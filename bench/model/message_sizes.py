"""Message sizes that differ within a cell: a distribution, and a table of sizes that is drawn from it before a run.

Message i of a producer has the size of entry i (modulo the table's length, shifted by the producer). So a reader knows
the size that a message must have, and nothing is drawn while messages are sent. The table is stratified: its entries
are the middles of equal shares of the distribution, ordered by a seed so that every block of entries represents the
whole distribution. Its mean, the largest size and each share of a choice are therefore the same for every seed.
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
"""Entries between the first messages of two producers, so that they do not all send the largest message at once."""
MAX_MESSAGE_SIZE = "1 GB"
MIN_SHARE = 0.001
"""The smallest share of a choice; for a smaller one the table has too few entries."""
_P99 = NormalDist().inv_cdf(0.99)

OneSize = Annotated[Size, limits(least=f"{MIN_MESSAGE_BYTES} B", most=MAX_MESSAGE_SIZE)]


class Lognormal(Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes whose logarithm is normally distributed, given by two of their quantiles; none is below 64 B."""

    median: OneSize
    p99: OneSize


class Mix(Struct, frozen=True, forbid_unknown_fields=True):
    """A distribution as it is written in a scenario; exactly one of its keys is given."""

    lognormal: Lognormal | None = None
    choice: Mapping[str, Share] | None = None


class Sizes(Struct, frozen=True):
    """A distribution of message sizes in bytes: lognormal, or a choice of (size, share) in ascending order."""

    median: int = 0
    p99: int = 0
    choice: tuple[tuple[int, float], ...] = ()

    @property
    def text(self) -> str:
        """Text for reports: "lognormal, median 10 kB, p99 1 MB", or "90 % 100 B, 10 % 1 MB"."""
        if self.choice:
            return ", ".join(f"{100 * share:g} % {size_text(size)}" for size, share in self.choice)
        return f"lognormal, median {size_text(self.median)}, p99 {size_text(self.p99)}"

    @property
    def written(self) -> dict[str, object]:
        """The distribution as a scenario has it."""
        if self.choice:
            return {"choice": {f"{size} B": share for size, share in self.choice}}
        return {"lognormal": {"median": f"{self.median} B", "p99": f"{self.p99} B"}}

    @property
    def mean(self) -> int:
        """Mean of the table, rounded to whole bytes."""
        return round(float(draw_size_table(self, 0).mean()))

    @property
    def largest(self) -> int:
        """Largest size of the table in bytes."""
        return int(draw_size_table(self, 0).max())


class SizeSequence(Struct, frozen=True):
    """The size of each message of a run: a distribution, and the seed that orders its table."""

    sizes: Sizes
    seed: int

    def lookup(self, producers: NDArray[np.int64], numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the size in bytes of each message with these producers and sequence numbers; equal shapes."""
        entries = (numbers + producers.astype(np.uint64) * np.uint64(SHIFT)) % np.uint64(ENTRIES)
        sizes: NDArray[np.int64] = draw_size_table(self.sizes, self.seed)[entries.astype(np.int64)]
        return sizes


class MessageSize(Size):
    """A cell's message size: a number of bytes, or the mean of the distribution in `sizes`."""

    sizes: Sizes | None = None

    @classmethod
    def read(cls, text: object) -> "MessageSize":
        """Read a size such as "10 kB", or a mapping that gives a distribution; ValueError if it is neither."""
        if not isinstance(text, Mapping):
            return cls(super().read(text))
        sizes = read_sizes(text)
        size = cls(sizes.mean)
        size.sizes = sizes
        return size

    @property
    def written(self) -> object:
        """The size as a file keeps it; a distribution as a mapping."""
        return self.sizes.written if self.sizes is not None else super().written

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True and getattr(other, "sizes", None) == self.sizes

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((int(self), self.sizes))


Mistake = tuple[tuple[str, ...], str, str]
"""The keys that lead to a wrong value within the mapping, the value, and what is allowed."""


def read_sizes(mix: Mapping[str, object]) -> Sizes:
    """Return the distribution that a scenario's mapping gives.

    Raises:
        ValueError: The mapping gives none; the message says what is wrong and what is allowed.
    """
    mistake = next(find_mistakes(mix), None)
    if mistake is not None:
        raise ValueError(f"{'.'.join(mistake[0])}: {mistake[1]}; allowed: {mistake[2]}")
    lognormal, choice = mix.get("lognormal"), mix.get("choice")
    if isinstance(lognormal, Mapping):
        return Sizes(Size.read(lognormal["median"]), Size.read(lognormal["p99"]))
    assert isinstance(choice, Mapping)
    return Sizes(
        choice=tuple(sorted((int(Size.read(size)), float(Share.read(share))) for size, share in choice.items()))
    )


def find_mistakes(mix: Mapping[str, object]) -> Iterator[Mistake]:
    """Yield each rule that a mapping of well-typed values breaks."""
    given = [name for name in ("lognormal", "choice") if mix.get(name) is not None]
    if len(given) != 1:
        yield (), " and ".join(given) or "neither", "exactly one of lognormal and choice"
        return
    inner = mix[given[0]]
    if given == ["choice"] and isinstance(inner, Mapping):
        yield from _choice_mistakes(inner)
    elif isinstance(inner, Mapping):
        yield from _lognormal_mistakes(int(Size.read(inner["median"])), int(Size.read(inner["p99"])))


def _choice_mistakes(choice: Mapping[str, object]) -> Iterator[Mistake]:
    sizes, least, most = [], Size.read(f"{MIN_MESSAGE_BYTES} B"), Size.read(MAX_MESSAGE_SIZE)
    for text, share in choice.items():
        try:
            size = Size.read(text)
        except ValueError:
            size = Size(0)
        if not least <= size <= most:
            yield (
                ("choice", text),
                repr(text),
                f"{Size.allowed}, at least {size_text(least)}, at most {MAX_MESSAGE_SIZE}",
            )
            return
        if size in sizes:
            yield ("choice", text), f"the size {size_text(size)} a second time", "each size once"
        if Share.read(share) < MIN_SHARE:
            yield ("choice", text), f"the share {Share.read(share):g}", f"at least {MIN_SHARE:.1%}"
        sizes.append(size)
    total = sum(Share.read(share) for share in choice.values())
    if abs(total - 1) > 1e-6:
        yield ("choice",), f"shares that add up to {total:g}", "shares that add up to 1, or 100 %"


def _lognormal_mistakes(median: int, p99: int) -> Iterator[Mistake]:
    if not median < p99:
        yield ("lognormal", "p99"), size_text(p99), f"a size above the median ({size_text(median)})"
        return
    largest = Sizes(median, p99).largest
    if largest > Size.read(MAX_MESSAGE_SIZE):
        value = f"{size_text(p99)}, so that the largest would have {size_text(largest)}"
        yield ("lognormal", "p99"), value, f"a largest of {MAX_MESSAGE_SIZE}"


@lru_cache(maxsize=8)
def draw_size_table(sizes: Sizes, seed: int) -> NDArray[np.int64]:
    """Return the sizes of the first ENTRIES messages, read-only; later messages start again at the beginning."""
    ordered, rows = _quantiles(sizes), ENTRIES // BLOCK
    strata, generator = ordered.reshape(BLOCK, rows), np.random.default_rng([seed, 5])
    blocks = generator.permuted(strata, axis=1).T  # one entry of each stratum in each block
    table: NDArray[np.int64] = generator.permuted(blocks, axis=1).reshape(-1)
    table.setflags(write=False)
    return table


def _quantiles(sizes: Sizes) -> NDArray[np.int64]:
    """Return the sizes at the middles of ENTRIES equal shares, in ascending order."""
    shares = (np.arange(ENTRIES) + 0.5) / ENTRIES
    if sizes.choice:
        values, ends = np.array([size for size, _ in sizes.choice]), np.cumsum([share for _, share in sizes.choice])
        chosen: NDArray[np.int64] = values[np.minimum(np.searchsorted(ends, shares), len(values) - 1)]
        return chosen
    spread = np.log(sizes.p99 / sizes.median) / _P99
    normal = np.array([NormalDist().inv_cdf(float(share)) for share in shares])
    exact = np.rint(sizes.median * np.exp(spread * normal))
    quantiles: NDArray[np.int64] = np.maximum(MIN_MESSAGE_BYTES, exact).astype(np.int64)
    return quantiles
