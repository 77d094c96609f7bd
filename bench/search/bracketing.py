"""The first, coarse look: probes that grow fourfold until one is overloaded, or shrink until one is not."""

import math

from msgspec import Struct
from msgspec.structs import replace

from bench.search.parameters import SearchParameters

CLEARLY = 1.1
"""How far above a rate that was kept up with one must have failed to be believed."""


class Bracketing(Struct, frozen=True):
    """Next comes a probe at `rate`, unless `centre`, about where the ceiling is, is known.

    `best` is the highest rate that was kept up with, `failed` the lowest that was not.

    A probe that fails is made once more before it is believed. A clear reading needs no second one, unless it says less than what
    was kept up with already; one that was given up within seconds must be clearer, since a single pause can do that.
    """

    rate: float
    lowest: float
    top: float
    best: float = 0.0
    failed: float = math.inf
    suspect: bool = False
    centre: float | None = None

    def after(self, loss: float | None, recipe: SearchParameters, *, given_up: bool) -> "Bracketing":
        """The climb that knows one more probe and its loss; None when it was overloaded in a way that gives no reading."""
        if loss is not None and loss <= recipe.bracket_loss:
            return self._up(recipe)
        reading = self.rate * (1 - loss) if loss is not None else None
        stop = recipe.bracket_stop * (2 if given_up else 1)
        plain = loss is not None and reading is not None and loss > stop and reading > 0.8 * self.best
        if not plain and not self.suspect:
            return replace(self, suspect=True)
        failed = replace(self, failed=min(self.failed, self.rate), suspect=False)
        readable = loss is not None and loss < recipe.readable
        if self.best == 0 and not readable and self.rate > self.lowest:
            return replace(failed, rate=max(self.lowest, self.rate / recipe.growth))
        return failed.found(reading)

    def beyond(self, rate: float, recipe: SearchParameters) -> "Bracketing":
        """The climb that goes on because that rate was kept up with, though it lies above the centre found.

        It ends between that rate and one that failed above it; a failure below it was that of a cold system, and is forgotten.
        """
        if rate * CLEARLY < self.failed <= recipe.growth * rate:
            return replace(self, best=rate, centre=math.sqrt(rate * self.failed))
        return replace(self, best=rate, failed=math.inf, centre=None, rate=min(self.top, recipe.growth * rate))

    def below(self, top: float) -> "Bracketing":
        """The climb that has learned of a lower top."""
        return replace(self, top=top, rate=min(self.rate, top))

    def _up(self, recipe: SearchParameters) -> "Bracketing":
        passed = replace(self, best=self.rate, suspect=False)
        higher = min(recipe.growth * self.rate, self.top)
        if higher >= self.failed:
            return passed.found(None)
        return replace(passed, centre=self.rate) if higher <= self.rate else replace(passed, rate=higher)

    def found(self, reading: float | None) -> "Bracketing":
        """The climb that ends: at the reading, or between what was kept up with and what was not."""
        if reading is None:
            reading = math.sqrt(self.best * self.failed) if self.best else self.rate
        return replace(self, centre=max(self.lowest, self.best, reading))
