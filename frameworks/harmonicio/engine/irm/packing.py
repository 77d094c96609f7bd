"""Bin packing: workers are bins of capacity 1, PEs are items; First-Fit, online, nothing moves once it is packed.

"strict" is the original's rule, an item fits where its size < free - margin; "leq" is the textbook's, size <= free with a tolerance
of 1e-9. Free space is kept by successive subtraction, as the original does: the known answers of the strict rule depend on it.
With leq, First-Fit uses at most floor(1.7 OPT) bins (Dosa and Sgall 2013).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from frameworks.harmonicio.engine.errors import Refused

Fit = Literal["strict", "leq"]
TOLERANCE = 1e-9


def fits(size: float, free: float, fit: Fit, margin: float = 0.0) -> bool:
    """Whether an item goes into a bin with so much free space."""
    return size < free - margin if fit == "strict" else size <= free - margin + TOLERANCE


def check_size(size: float, fit: Fit, margin: float = 0.0) -> None:
    """Raise Refused for an item that does not even fit an empty bin: the original loses it in silence."""
    if not size > 0 or not math.isfinite(size):
        raise Refused(f"the size of an item is a share above 0, not {size:g}")
    if not fits(size, 1.0, fit, margin):
        raise Refused(f"an item of size {size:g} does not fit an empty bin (rule {fit}, margin {margin:g})")


@dataclass(slots=True)
class Bin:
    """A worker's space."""

    free: float = 1.0
    items: dict[Hashable, float] = field(default_factory=dict)

    def put(self, key: Hashable, size: float) -> None:
        """Add an item."""
        self.items[key] = size
        self.free = min(1.0, max(0.0, self.free - size))

    def remove(self, key: Hashable) -> bool:
        """Take an item out; whether it was there."""
        size = self.items.pop(key, None)
        if size is None:
            return False
        self.free = min(1.0, max(0.0, self.free + size)) if self.items else 1.0
        return True


class Packing:
    """Bins in the order of their index; grows at its end, shrinks there too."""

    def __init__(self, fit: Fit = "leq", margin: float = 0.0) -> None:
        self.fit: Fit = fit
        self.margin = margin
        self.bins: list[Bin] = []

    def put(self, key: Hashable, size: float) -> int:
        """Pack an item by First-Fit; the index of its bin. Raises Refused when no bin could take it."""
        check_size(size, self.fit, self.margin)
        for index, space in enumerate(self.bins):
            if fits(size, space.free, self.fit, self.margin):
                space.put(key, size)
                return index
        self.bins.append(Bin())
        self.bins[-1].put(key, size)
        return len(self.bins) - 1

    def remove(self, key: Hashable) -> None:
        """Take an item out, if it is there; empty bins at the end go."""
        for space in self.bins:
            if space.remove(key):
                break
        self.trim()

    def trim(self) -> None:
        """Delete empty bins at the end."""
        while self.bins and not self.bins[-1].items:
            self.bins.pop()

    @property
    def lower_bound(self) -> int:
        """Bins that any packing of the same items needs: the sum of their sizes, rounded up."""
        return math.ceil(sum(size for space in self.bins for size in space.items.values()) - TOLERANCE)


def first_fit(sizes: Sequence[float], fit: Fit = "leq") -> list[list[float]]:
    """The bins of these items in their order; raises Refused for one that fits nowhere."""
    packing = Packing(fit)
    for key, size in enumerate(sizes):
        packing.put(key, size)
    return [list(space.items.values()) for space in packing.bins]


def first_fit_by_tree(sizes: Sequence[float], fit: Fit = "leq") -> list[list[float]]:
    """The same by a tournament tree on free space: O(n log n) instead of O(n m)."""
    leaves = 1
    while leaves < max(1, len(sizes)):
        leaves *= 2
    most_free = [1.0] * (2 * leaves)
    bins: list[list[float]] = []
    for size in sizes:
        check_size(size, fit)
        node = 1
        while node < leaves:
            node = 2 * node if fits(size, most_free[2 * node], fit) else 2 * node + 1
        index = node - leaves
        while len(bins) <= index:
            bins.append([])
        bins[index].append(size)
        most_free[node] = min(1.0, max(0.0, most_free[node] - size))
        while node > 1:
            node //= 2
            most_free[node] = max(most_free[2 * node], most_free[2 * node + 1])
    return bins


def vector_first_fit(items: Sequence[Sequence[float]], fit: Fit = "leq", margin: float = 0.0) -> list[list[int]]:
    """Items with one size for each dimension (CPU, memory, network); one fits where every dimension does. Indices by bin.

    The multi-dimensional fork uses "strict" with a margin of 0.05.
    """
    free: list[list[float]] = []
    bins: list[list[int]] = []
    for index, sizes in enumerate(items):
        for size in sizes:
            check_size(size, fit, margin)
        for space, members in zip(free, bins, strict=True):
            if all(fits(size, left, fit, margin) for size, left in zip(sizes, space, strict=True)):
                members.append(index)
                space[:] = [max(0.0, left - size) for size, left in zip(sizes, space, strict=True)]
                break
        else:
            free.append([1.0 - size for size in sizes])
            bins.append([index])
    return bins


def idle_buffer(bins: int) -> int:
    """Workers that are kept idle beside so many that are used."""
    if bins < 10:
        return 1
    return math.ceil(0.5 * math.log(bins)) if bins < 100 else math.floor(math.log(bins))
