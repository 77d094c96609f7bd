"""What the trials of a cell have said so far of its ceiling: the posterior, its width, and whether they agree."""

import math
from statistics import median, variance

from msgspec import Struct
from msgspec.structs import replace

from bench.search.posterior import MIN_SD, MIN_SLICE, MIN_SLICES, Observation, Posterior, Prior

MIN_NOISE, MAX_NOISE = 0.08, 0.18
"""Noise of one second that is granted to a system when trials are held against each other: a change from one mode to another within
a trial is no noise (without an upper limit two modes passed for one in 4 of 100 runs; S6 stays as it is up to 0.16)."""

BEYOND_RANGE = 1.1
MAX_OUTSIDE = 2
"""So many readings outside the grid move it."""
WHOLE = 0.5
"""Of the longest trial: a shorter one, made only for a first look, does not count as a whole trial."""


class Observations(Struct, frozen=True, eq=False):
    """Observations and the posterior that they make of the prior.

    `breached`: an objective other than the backlog was broken by a rate that the system kept up with. The ceiling asked for then
    lies below that of the backlog, and a reading of the latter says no more than "at most".
    """

    prior: Prior
    posterior: Posterior
    observations: tuple[Observation, ...] = ()
    breached: bool = False

    @classmethod
    def of(cls, prior: Prior) -> "Observations":
        return cls(prior, Posterior.of(prior))

    def after(self, *observations: Observation) -> "Observations":
        """The evidence with these trials as well; the grid moves on when the ceiling seems to lie beyond it."""
        known = self
        for seen in observations:
            known = known._with(seen)
        return known

    def _with(self, seen: Observation) -> "Observations":
        breached = self.breached or seen.kind == "at most"
        within = min(BEYOND_RANGE * self.prior.highest, max(self.prior.lowest / BEYOND_RANGE, seen.rate))
        seen = replace(seen, rate=within)  # what lies far outside would be no news for any ceiling of the range
        observations = (*self.observations, seen)
        if breached == self.breached:
            known = replace(
                self, observations=observations, posterior=self.posterior.after(_bounded(seen, breached=breached))
            )
        else:
            known = replace(self, observations=observations, breached=breached).rebuilt(self.prior)
        return known.within_its_grid()

    def below(self, highest: float) -> "Observations":
        """The evidence with a lower end to the range."""
        prior = self.prior
        return self.rebuilt(replace(prior, centre=min(prior.centre, highest), highest=min(prior.highest, highest)))

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        return self.posterior.quantiles(*shares)

    @property
    def trials(self) -> int:
        """How many whole trials there are."""
        lengths = [seen.seconds for seen in self.observations if seen.kind != "given up"]
        return sum(seconds >= WHOLE * max(lengths) for seconds in lengths)

    @property
    def width(self) -> float:
        """Of the interval that holds the ceiling with 95 %, as a share of its lower end."""
        low, high = self.quantiles(0.025, 0.975)
        return high / low - 1

    def disagreeing(self, surprise: float) -> int:
        """How many trials cannot be right whatever the ceiling is; two that are `surprise` standard deviations apart disagree."""
        seen, noise = self._heeded(), self._noise()
        places = [(o.kind, math.log(o.rate), surprise * math.hypot(noise / math.sqrt(o.seconds), MIN_SD)) for o in seen]
        agreeing = (sum(_agrees(*place, theta) for place in places) for _, theta, _ in places)
        return len(seen) - max(agreeing, default=0)

    def torn(self, clearly: float) -> int:
        """How many pairs there are of a rate that was kept up with and a reading `clearly` (standard deviations) below it.

        Each trial is in one pair only: a freak makes one, a system that is now fast and now slow makes many. A trial that was given
        up within seconds is no reading; three of them that say less than a rate that was kept up with are taken for a pair.
        """
        noise, seen = self._noise(), self._heeded()
        cached_resource = sorted((one for one in seen if one.kind == "at least"), key=lambda one: -one.rate)
        readings = sorted((one for one in seen if one.kind == "reading"), key=lambda one: one.rate)
        given_up = sorted(one.rate for one in self.observations if one.kind == "given up")
        far = sum(
            math.log(above.rate / below.rate) > clearly * noise * math.sqrt(1 / below.seconds + 1 / above.seconds)
            for below, above in zip(readings, cached_resource, strict=False)
        )
        return max(far, sum(below < above.rate for below, above in zip(given_up, cached_resource, strict=False)) // 3)

    def _heeded(self) -> list[Observation]:
        """The observations as the posterior takes them, less those of trials that were given up."""
        return [_bounded(seen, breached=self.breached) for seen in self.observations if seen.kind != "given up"]

    def _noise(self) -> float:
        """The noise of one second as the slices within overloaded trials show it, not the spread between trials."""
        logs = [
            (o.slice_seconds, [math.log(rate) for rate in o.slices if rate > 0])
            for o in self.observations if o.kind == "reading" and o.slice_seconds >= MIN_SLICE
        ]  # fmt: skip
        spreads = [seconds * variance(slices) for seconds, slices in logs if len(slices) >= MIN_SLICES]
        return min(MAX_NOISE, max(MIN_NOISE, math.sqrt(median(spreads)) if spreads else 2 * MIN_NOISE))

    def rebuilt(self, prior: Prior) -> "Observations":
        """The same trials on another prior."""
        bounded = [_bounded(seen, breached=self.breached) for seen in self.observations]
        return replace(self, prior=prior, posterior=Posterior.of(prior, bounded))

    def within_its_grid(self) -> "Observations":
        """The same on a grid farther up or down, when the ceiling seems to lie at its end and the range goes on."""
        edge, prior, (low, high) = self.posterior.edge(), self.prior, self.posterior.ends
        outside = [seen.rate for seen in self.observations if seen.kind == "reading" and not low <= seen.rate <= high]
        wanted = median(outside) if len(outside) >= MAX_OUTSIDE else prior.centre * 4.0**edge
        centre = min(prior.highest, max(prior.lowest, wanted))
        same = abs(math.log(centre / prior.centre)) < 0.1
        return self if same else self.rebuilt(replace(prior, centre=centre))


def _bounded(seen: Observation, *, breached: bool) -> Observation:
    return replace(seen, kind="at most") if breached and seen.kind == "reading" else seen


def _agrees(kind: str, place: float, margin: float, theta: float) -> bool:
    if kind == "at least":
        return theta > place - margin
    return theta < place + margin if kind == "at most" else abs(theta - place) < margin
