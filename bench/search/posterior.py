"""Posterior of the capacity: weights on a grid of ln(capacity) and noise, updated by one observation a trial.

Bayesian estimation on a grid, as in a probabilistic bisection: an overloaded trial is a normal reading of
ln(capacity), a sustained one a censored reading ("at least"), one that broke another objective "at most". Every
likelihood has a floor, so that no single trial can exclude a capacity. Formulas and constants: the project's
max-rate-search reference, section 5.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

POINTS = 3001
SPAN = 8.0
"""The grid reaches from 1/8 of the prior's centre to 8 times it."""
ABOVE_HIGHEST = 1.02
"""The grid ends at this multiple of the highest rate."""
SIGMAS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Grid of the relative noise of the mean rate over one second; over T seconds the noise is sigma / sqrt(T)."""
MIN_SD = 0.004
"""Least standard deviation of an observation of ln(capacity), however long the trial."""
LENIENCE = 0.5
"""Shift of a lower bound in standard deviations: at the capacity itself 7 of 10 trials are sustained, not 5 (reference:
0)."""
OUTLIER_DENSITY = math.exp(-7)
PRIOR_FLOOR = 0.01
"""Floor of the prior, relative to its maximum: a wrong centre can be overruled."""
MIN_SLICES, MIN_SLICE_S = 3, 5.0
"""Least number and length of the slices that show noise: in shorter ones the noise, which lasts for seconds, is hardly
seen."""

Kind = Literal["estimate", "at least", "at most", "aborted"]
Grid = NDArray[np.float64]


class Observation(Struct, frozen=True):
    """The observation of one trial: the capacity is about `rate`, at least `rate` or at most `rate`, in messages/s.

    An "aborted" trial was given up within seconds: too short for an estimate (one pause can abort it), it says "at
    most".
    """

    kind: Kind
    rate: float
    seconds: float
    slice_rates: tuple[float, ...] = ()
    slice_seconds: float = 0.0
    outlier_density: float = OUTLIER_DENSITY
    """floor of the likelihood: the larger it is, the sooner the trial counts as an outlier"""


class Prior(Struct, frozen=True):
    """The prior of the capacity: ln(capacity) ~ Normal(ln `centre`, `sd`), with a floor.

    It ends at `lowest` and `highest` messages/s.
    """

    centre: float
    sd: float
    lowest: float
    highest: float


class Posterior(Struct, frozen=True, eq=False):
    """Log weights over (noise, ln capacity): a row for each of SIGMAS, a column for each of `thetas`."""

    thetas: Grid
    weights: Grid

    @classmethod
    def of(cls, prior: Prior, observations: Sequence[Observation] = ()) -> "Posterior":
        """Return the posterior of a prior, flat over the noise, and observations."""
        low = max(prior.lowest, prior.centre / SPAN)
        high = max(min(ABOVE_HIGHEST * prior.highest, prior.centre * SPAN), low * 1.01)
        thetas = np.linspace(math.log(low), math.log(high), POINTS)
        bell = np.exp(-0.5 * ((thetas - math.log(prior.centre)) / prior.sd) ** 2)
        posterior = cls(thetas, np.tile(np.log(bell + PRIOR_FLOOR), (len(SIGMAS), 1)))
        for observation in observations:
            posterior = posterior.update(observation)
        return posterior

    def update(self, observation: Observation) -> "Posterior":
        """Return the posterior with one more observation, whose likelihood L counts as L + outlier density."""
        likelihood = np.log(np.exp(_log_likelihood(self.thetas, observation)) + observation.outlier_density)
        return Posterior(self.thetas, self.weights + likelihood + _log_noise_likelihood(observation)[:, None])

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the capacities in messages/s below which the probability is each of `shares` (0 to 1)."""
        cumulated = np.cumsum(np.exp(self.weights - self.weights.max()).sum(axis=0))
        return tuple(
            float(rate) for rate in np.exp(np.interp(np.array(shares) * cumulated[-1], cumulated, self.thetas))
        )

    @property
    def noise(self) -> float:
        """The expected relative noise of the mean rate over one second."""
        mass = np.exp(self.weights - self.weights.max()).sum(axis=1)
        return float((mass * np.array(SIGMAS)).sum() / mass.sum())

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest capacity of the grid, in messages/s."""
        return math.exp(self.thetas[0]), math.exp(self.thetas[-1])

    def edge(self) -> int:
        """Return -1 or 1 if the 95 % interval reaches the lowest or highest 2 % of the grid; else 0.

        The capacity may then lie outside the grid.
        """
        low, high = self.quantiles(0.025, 0.975)
        near = 0.02 * (self.thetas[-1] - self.thetas[0])
        if math.log(low) < self.thetas[0] + near:
            return -1
        return 1 if math.log(high) > self.thetas[-1] - near else 0


def _log_likelihood(thetas: Grid, observation: Observation) -> Grid:
    """Return ln L for each noise and capacity: normal density of an estimate, normal probability of a bound."""
    sd = np.sqrt(np.array(SIGMAS) ** 2 / observation.seconds + MIN_SD**2)[:, None]
    z = (thetas - math.log(observation.rate)) / sd
    if observation.kind == "estimate":
        return np.asarray(-0.5 * z * z - np.log(sd))
    return _log_phi(z + LENIENCE if observation.kind == "at least" else -z)


def _log_noise_likelihood(observation: Observation) -> Grid:
    """Return ln L of the spread between the slices of an overloaded trial, for each of SIGMAS.

    The model is a normal ln(rate) of unknown mean.
    """
    positive = [rate for rate in observation.slice_rates if rate > 0]
    if observation.kind != "estimate" or len(positive) < MIN_SLICES or observation.slice_seconds < MIN_SLICE_S:
        return np.zeros(len(SIGMAS))
    logs = np.log(positive)
    variance = np.array(SIGMAS) ** 2 / observation.slice_seconds
    spread = float(((logs - logs.mean()) ** 2).sum())
    return np.asarray(-0.5 * spread / variance - 0.5 * (len(logs) - 1) * np.log(variance))


_TABLE_END, _TABLE_STEP = 8.0, 0.001


def _log_phi(z: Grid) -> Grid:
    """Return the logarithm of the normal distribution function, from a table.

    Below -8 the outlier density dominates anyway.
    """
    index = ((np.clip(z, -_TABLE_END, _TABLE_END) + _TABLE_END) / _TABLE_STEP + 0.5).astype(np.intp)
    return np.asarray(_TABLE[index])


_TABLE = np.array(
    [
        math.log(0.5 * math.erfc(-(-_TABLE_END + _TABLE_STEP * i) / math.sqrt(2)))
        for i in range(round(2 * _TABLE_END / _TABLE_STEP) + 1)
    ]
)
