"""What the trials so far say of the ceiling: a grid over its logarithm and the system's noise, each trial one observation.

An overloaded trial is a reading of the ceiling, a sustained one says "at least", one that broke another objective "at most". No
single trial can veto: every likelihood has a floor. Formulas: the project's max-rate-search reference, section 5.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

POINTS = 3001
SPAN = 8.0
BEYOND_TOP = 1.02
SIGMAS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Noise of the mean rate over one second, relative; over T seconds it is this / sqrt(T)."""
MIN_SD = 0.004
LENIENCE = 0.5
"""A backlog may come back to its floor at the very ceiling: there 7 of 10 trials are sustained, not 5 (reference: 0)."""
FREAK = math.exp(-7)
PRIOR_FLOOR = 0.01
MIN_SLICES, MIN_SLICE = 3, 5.0
"""How many slices show noise, and how long in seconds each must be: shorter ones are alike only because noise lasts."""

Kind = Literal["reading", "at least", "at most", "given up"]
Grid = NDArray[np.float64]


class Observation(Struct, frozen=True):
    """One trial: `rate` is the ceiling that it read, or the rate that the ceiling is at least or at most.

    A trial "given up" within seconds is too short to be read (one pause makes it look hopeless): it too says "at most". `floor`
    is the least density that any ceiling keeps: the larger, the sooner a trial is taken for a freak.
    """

    kind: Kind
    rate: float
    seconds: float
    slices: tuple[float, ...] = ()
    slice_seconds: float = 0.0
    floor: float = FREAK


class Prior(Struct, frozen=True):
    """Where the ceiling may lie: about `centre`, within a range that is certain; `sd` of its logarithm."""

    centre: float
    sd: float
    lowest: float
    highest: float


class Posterior(Struct, frozen=True, eq=False):
    """Log weights over (noise, ln ceiling)."""

    thetas: Grid
    weights: Grid

    @classmethod
    def of(cls, prior: Prior, observations: Sequence[Observation] = ()) -> "Posterior":
        """The prior, and what these trials add to it."""
        low = max(prior.lowest, prior.centre / SPAN)
        high = max(min(BEYOND_TOP * prior.highest, prior.centre * SPAN), low * 1.01)
        thetas = np.linspace(math.log(low), math.log(high), POINTS)
        bell = np.exp(-0.5 * ((thetas - math.log(prior.centre)) / prior.sd) ** 2)
        posterior = cls(thetas, np.tile(np.log(bell + PRIOR_FLOOR), (len(SIGMAS), 1)))
        for observation in observations:
            posterior = posterior.after(observation)
        return posterior

    def after(self, seen: Observation) -> "Posterior":
        """The posterior that knows one more trial."""
        likelihood = np.log(np.exp(_log_likelihood(self.thetas, seen)) + seen.floor)
        return Posterior(self.thetas, self.weights + likelihood + _noise_likelihood(seen)[:, None])

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Rates in messages/s below which the ceiling lies with these probabilities."""
        cumulated = np.cumsum(np.exp(self.weights - self.weights.max()).sum(axis=0))
        return tuple(
            float(rate) for rate in np.exp(np.interp(np.array(shares) * cumulated[-1], cumulated, self.thetas))
        )

    @property
    def noise(self) -> float:
        """The expected noise of one second, relative."""
        mass = np.exp(self.weights - self.weights.max()).sum(axis=1)
        return float((mass * np.array(SIGMAS)).sum() / mass.sum())

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest rate of the grid."""
        return math.exp(self.thetas[0]), math.exp(self.thetas[-1])

    def edge(self) -> int:
        """-1 or 1 when much of the mass lies at the lower or upper end of the grid, so that the ceiling may lie beyond; else 0."""
        low, high = self.quantiles(0.025, 0.975)
        near = 0.02 * (self.thetas[-1] - self.thetas[0])
        if math.log(low) < self.thetas[0] + near:
            return -1
        return 1 if math.log(high) > self.thetas[-1] - near else 0


def _log_likelihood(thetas: Grid, seen: Observation) -> Grid:
    sd = np.sqrt(np.array(SIGMAS) ** 2 / seen.seconds + MIN_SD**2)[:, None]
    z = (thetas - math.log(seen.rate)) / sd
    if seen.kind == "reading":
        return np.asarray(-0.5 * z * z - np.log(sd))
    return _log_phi(z + LENIENCE if seen.kind == "at least" else -z)


def _noise_likelihood(seen: Observation) -> Grid:
    """What the spread between the slices of an overloaded trial says of the noise, one value for each of SIGMAS."""
    positive = [rate for rate in seen.slices if rate > 0]
    if seen.kind != "reading" or len(positive) < MIN_SLICES or seen.slice_seconds < MIN_SLICE:
        return np.zeros(len(SIGMAS))
    logs = np.log(positive)
    variance = np.array(SIGMAS) ** 2 / seen.slice_seconds
    spread = float(((logs - logs.mean()) ** 2).sum())
    return np.asarray(-0.5 * spread / variance - 0.5 * (len(logs) - 1) * np.log(variance))


_REACH, _STEP = 8.0, 0.001


def _log_phi(z: Grid) -> Grid:
    """The logarithm of the normal distribution function, from a table: below -8 the floor of a likelihood decides anyway."""
    place = ((np.clip(z, -_REACH, _REACH) + _REACH) / _STEP + 0.5).astype(np.intp)
    return np.asarray(_TABLE[place])


_TABLE = np.array(
    [math.log(0.5 * math.erfc(-(-_REACH + _STEP * i) / math.sqrt(2))) for i in range(round(2 * _REACH / _STEP) + 1)]
)
