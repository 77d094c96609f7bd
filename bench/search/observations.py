"""The observations of one cell: their posterior, the width of its interval, and the agreement between the trials."""

import math
from statistics import median, variance

from msgspec import Struct
from msgspec.structs import replace

from bench.search.posterior import MIN_SD, MIN_SLICE_S, MIN_SLICES, Observation, Posterior, Prior

MIN_NOISE, MAX_NOISE = 0.08, 0.18
"""Range of the noise of one second that comparisons between trials assume. A change of mode within a trial is no noise:
without an upper limit two modes passed for one in 4 of 100 runs; S6 gives the same results down to 0.16."""

BEYOND_RANGE = 1.1
"""Observations are clipped to this factor beyond the range: farther away they tell nothing more about a capacity within
it."""
MAX_OUTSIDE = 2
"""From this number of estimates outside the grid on, it is centred on them."""
WHOLE_TRIAL = 0.5
"""Shorter trials, as a share of the longest one, are probes and not counted as trials."""


class Observations(Struct, frozen=True, eq=False):
    """The observations of a cell and the posterior that follows from them and the prior.

    `breached`: a trial that the system kept up with broke an objective other than the backlog. The capacity searched
    for then lies below that of the backlog, so that estimates of the latter count as "at most".
    """

    prior: Prior
    posterior: Posterior
    observations: tuple[Observation, ...] = ()
    breached: bool = False

    @classmethod
    def of(cls, prior: Prior) -> "Observations":
        """Return the state before the first observation."""
        return cls(prior, Posterior.of(prior))

    def add(self, *observations: Observation) -> "Observations":
        """Return the state with more observations; the grid moves if the capacity seems to lie beyond it."""
        state = self
        for observation in observations:
            state = state._add_one(observation)
        return state

    def _add_one(self, observation: Observation) -> "Observations":
        breached = self.breached or observation.kind == "at most"
        clipped = min(BEYOND_RANGE * self.prior.highest, max(self.prior.lowest / BEYOND_RANGE, observation.rate))
        observation = replace(observation, rate=clipped)
        observations = (*self.observations, observation)
        if breached == self.breached:
            posterior = self.posterior.update(_as_used(observation, breached=breached))
            state = replace(self, observations=observations, posterior=posterior)
        else:
            state = replace(self, observations=observations, breached=breached).rebuild(self.prior)
        return state.move_grid()

    def limit_to(self, highest: float) -> "Observations":
        """Return the state with a lower highest rate, in messages/s."""
        prior = self.prior
        return self.rebuild(replace(prior, centre=min(prior.centre, highest), highest=min(prior.highest, highest)))

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return quantiles of the capacity in messages/s."""
        return self.posterior.quantiles(*shares)

    @property
    def trials(self) -> int:
        """The number of full-length trials."""
        lengths = [each.seconds for each in self.observations if each.kind != "aborted"]
        return sum(seconds >= WHOLE_TRIAL * max(lengths) for seconds in lengths)

    @property
    def width(self) -> float:
        """The relative width of the 95 % credible interval: q97.5 / q2.5 - 1, before its inflation."""
        low, high = self.quantiles(0.025, 0.975)
        return high / low - 1

    def count_outliers(self, sds: float) -> int:
        """Return the number of trials that disagree with the capacity on which most trials agree.

        Args:
            sds: Standard deviations of ln(rate) from a capacity within which a trial agrees with it.
        """
        used, noise = self._used(), self._slice_noise()
        logs = [(o.kind, math.log(o.rate), sds * math.hypot(noise / math.sqrt(o.seconds), MIN_SD)) for o in used]
        agreeing = (sum(_agrees(*each, theta) for each in logs) for _, theta, _ in logs)
        return len(used) - max(agreeing, default=0)

    def count_contradictions(self, sds: float) -> int:
        """Return the number of disjoint pairs of a sustained rate and a capacity estimate clearly below it.

        An outlier makes one pair, a system whose capacity alternates makes many. An aborted trial gives no estimate;
        three of them at rates below sustained ones count as a pair.

        Args:
            sds: Standard deviations of the difference of ln(rate) from which on an estimate lies clearly below.
        """
        noise, used = self._slice_noise(), self._used()
        sustained = sorted((one for one in used if one.kind == "at least"), key=lambda one: -one.rate)
        estimates = sorted((one for one in used if one.kind == "estimate"), key=lambda one: one.rate)
        aborted = sorted(one.rate for one in self.observations if one.kind == "aborted")
        clear = sum(
            math.log(above.rate / below.rate) > sds * noise * math.sqrt(1 / below.seconds + 1 / above.seconds)
            for below, above in zip(estimates, sustained, strict=False)
        )
        return max(clear, sum(below < above.rate for below, above in zip(aborted, sustained, strict=False)) // 3)

    def _used(self) -> list[Observation]:
        """Return the observations as the posterior takes them, without aborted trials."""
        return [_as_used(each, breached=self.breached) for each in self.observations if each.kind != "aborted"]

    def _slice_noise(self) -> float:
        """Return the relative noise of one second: the median of the spreads between slices of a trial.

        The spread between trials is not taken, since a contradiction would then pass for noise.
        """
        logs = [
            (o.slice_seconds, [math.log(rate) for rate in o.slice_rates if rate > 0])
            for o in self.observations if o.kind == "estimate" and o.slice_seconds >= MIN_SLICE_S
        ]  # fmt: skip
        variances = [seconds * variance(slices) for seconds, slices in logs if len(slices) >= MIN_SLICES]
        return min(MAX_NOISE, max(MIN_NOISE, math.sqrt(median(variances)) if variances else 2 * MIN_NOISE))

    def rebuild(self, prior: Prior) -> "Observations":
        """Return the same observations with another prior."""
        used = [_as_used(each, breached=self.breached) for each in self.observations]
        return replace(self, prior=prior, posterior=Posterior.of(prior, used))

    def move_grid(self) -> "Observations":
        """Return the state on a grid farther up or down if the capacity seems to lie beyond the present one."""
        edge, prior, (low, high) = self.posterior.edge(), self.prior, self.posterior.ends
        outside = [each.rate for each in self.observations if each.kind == "estimate" and not low <= each.rate <= high]
        wanted = median(outside) if len(outside) >= MAX_OUTSIDE else prior.centre * 4.0**edge
        centre = min(prior.highest, max(prior.lowest, wanted))
        unchanged = abs(math.log(centre / prior.centre)) < 0.1
        return self if unchanged else self.rebuild(replace(prior, centre=centre))


def _as_used(observation: Observation, *, breached: bool) -> Observation:
    """Return the observation as the posterior takes it: after a breach an estimate is an upper bound."""
    return replace(observation, kind="at most") if breached and observation.kind == "estimate" else observation


def _agrees(kind: str, log_rate: float, margin: float, theta: float) -> bool:
    if kind == "at least":
        return theta > log_rate - margin
    return theta < log_rate + margin if kind == "at most" else abs(theta - log_rate) < margin
