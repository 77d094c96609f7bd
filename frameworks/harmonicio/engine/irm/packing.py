"""Online bin packing: workers are bins of capacity 1, PEs are items that never move.

The rule of the original is First-Fit: the first bin that an item fits. Best-Fit takes the fullest one. Neither needs
fewer bins for all items.

"strict" is the rule of the original: an item fits where size < free - margin. "leq" is the textbook's: size <= free,
with a tolerance of 1e-9. Free space is computed by successive subtraction as in the original; the known answers of the
strict rule depend on that. With leq, First-Fit uses at most floor(1.7 OPT) bins (Dosa and Sgall 2013).
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from frameworks.harmonicio.engine.errors import RefusedError

Fit = Literal["strict", "leq"]
Rule = Literal["first-fit", "best-fit"]
TOLERANCE = 1e-9


def fits(size: float, free: float, fit: Fit, margin: float = 0.0) -> bool:
    """Return whether an item fits a bin with so much free space; shares of a worker."""
    return size < free - margin if fit == "strict" else size <= free - margin + TOLERANCE


def check_size(size: float, fit: Fit, margin: float = 0.0) -> None:
    """Raise RefusedError for an item that does not fit an empty bin, which the original loses silently."""
    if not size > 0 or not math.isfinite(size):
        raise RefusedError(f"the size of an item is a share above 0, not {size:g}")
    if not fits(size, 1.0, fit, margin):
        raise RefusedError(f"an item of size {size:g} does not fit an empty bin (rule {fit}, margin {margin:g})")


@dataclass(slots=True)
class Bin:
    """The free space and the items of one worker."""

    free: float = 1.0
    items: dict[Hashable, float] = field(default_factory=dict)

    def put(self, key: Hashable, size: float) -> None:
        """Add an item."""
        self.items[key] = size
        self.free = min(1.0, max(0.0, self.free - size))

    def remove(self, key: Hashable) -> bool:
        """Remove an item; return whether it was there."""
        size = self.items.pop(key, None)
        if size is None:
            return False
        self.free = min(1.0, max(0.0, self.free + size)) if self.items else 1.0
        return True


class Packing:
    """Bins in the order of their index, added and removed at the end."""

    def __init__(self, fit: Fit = "leq", margin: float = 0.0, rule: Rule = "first-fit") -> None:
        self.fit: Fit = fit
        self.rule: Rule = rule
        self.margin = margin
        self.bins: list[Bin] = []

    def put(self, key: Hashable, size: float) -> int:
        """Pack an item by the rule; return the index of its bin. Raises RefusedError when it fits no empty bin."""
        check_size(size, self.fit, self.margin)
        fitting = (index for index, space in enumerate(self.bins) if fits(size, space.free, self.fit, self.margin))
        first = self.rule == "first-fit"
        index = next(fitting, None) if first else min(fitting, key=lambda each: self.bins[each].free, default=None)
        if index is None:
            self.bins.append(Bin())
            index = len(self.bins) - 1
        self.bins[index].put(key, size)
        return index

    def remove(self, key: Hashable) -> None:
        """Remove an item if it is there, and the empty bins at the end."""
        for space in self.bins:
            if space.remove(key):
                break
        self.trim()

    def trim(self) -> None:
        """Remove empty bins at the end."""
        while self.bins and not self.bins[-1].items:
            self.bins.pop()

    @property
    def lower_bound(self) -> int:
        """Return the bins that any packing of the same items needs: the sum of their sizes, rounded up."""
        return math.ceil(sum(size for space in self.bins for size in space.items.values()) - TOLERANCE)


def idle_buffer(bins: int) -> int:
    """Return the number of workers to keep idle beside `bins` used ones."""
    if bins < 10:
        return 1
    return math.ceil(0.5 * math.log(bins)) if bins < 100 else math.floor(math.log(bins))
