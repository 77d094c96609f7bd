"""Posterior of the capacity from readings.

A grid over ln(capacity), the noise, the fixed share of a batch's time, the time until a system that was started cold
reaches its speed, and the part of the explainable loss that other work really caused. Every likelihood has a floor, so
that no single trial can exclude a capacity. The readings and the fixed share are described in
bench.analysis.capacity_reading.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.analysis.capacity_reading import Reading

Grid = NDArray[np.float64]
SIGMAS = np.array([0.02, 0.04, 0.08, 0.16, 0.32, 0.64])
SIGMA_WEIGHTS = np.array([0.02, 0.06, 0.20, 0.40, 0.25, 0.07])
"""Grid of the relative noise of the mean rate over one second, and its prior: what simulated and real systems show."""
FIXED_SHARES = np.linspace(0.0, 0.9, 10)
SHARE_STEP, SHARE_SD = 0.1, 0.12
"""Step of the grid of fixed shares, and the standard deviation between the cells of a system."""
WARM_UPS_S = (0.0, 20.0, 60.0, 150.0)
WARM_UP_WEIGHTS, COLD_WEIGHTS = (0.98, 0.008, 0.008, 0.004), (0.16, 0.28, 0.28, 0.28)
"""Prior of the time until full speed: of a system of which nothing is known, and of one that is said to be cold."""
COLD_SHARE = 0.6
"""Speed of a system that has just started, as a share of its speed when warm. The work that a scenario asks for with
each message takes its time at any speed."""
COLD_SD = 0.6
"""Additional standard deviation of a reading for each unit of speed that a cold system lacks: how the speed rises from
its share in the beginning to one is not known, and while it rises, batches of one trial differ."""
SPREAD_FACTOR, SPREAD_SD = 3.0, 0.4
"""Noise that lasts for seconds is up to three times as large over a trial as slices of a second show; larger noise is
less probable, by a normal density of ln(noise) with this standard deviation. With batches, smaller noise is, too."""
PAUSE_SPREAD, UNSTEADY_TRIALS = 0.06, 3
"""What slices of a system with batches show by rare pauses, which does not count for the lower limit; and how many
trials must show more. Continuous systems have no lower limit: a slice has a whole pause or none."""
MIN_SPREAD = 0.05
MIN_SD = 0.01
"""Standard deviation of an estimate of ln(capacity) from any trial, however long."""
EXCESS_SD, EXTRAPOLATION_SD = 0.1, 0.15
"""Additional standard deviations for each unit of ln(rate): of readings beyond and below the capacity."""
STARVED_EXCESS_SD = 0.5
"""The same of readings beyond what reaches the batches: a receiver that is offered too much takes in far less, or more,
than one that is offered what it can just take (1 MB through Spark's: 104/s to 394/s, where 280/s was sustained)."""
LENIENCE = 0.5
"""Shift of a lower bound in standard deviations: at the capacity itself 7 of 10 trials are sustained."""
LOSS_SHARES, LOSS_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0), (0.3, 0.13, 0.14, 0.13, 0.3)
"""Part of the loss that other work explains which it did cause, and its weight. It is one for all trials of a cell:
work that takes nothing from a system that waits takes nothing in each of them. No trial changes the weights: the trials
that are left beside other work are no fair sample, and do not show which part it is."""
LOSS_SHARE_SD = 0.15
"""Standard deviation of this part between the trials of a cell."""
STRETCH_RATIO, MIN_STRETCH_WEIGHT = 0.15, 0.35
"""Fixed share of a long batch, divided by the rest of it, from which on it has the weight 1; and the lowest weight."""
OUTLIER_DENSITY = 0.02
COARSE_POINTS, FINE_POINTS = 201, 301
PRIOR_FLOOR = 0.02
NEGLIGIBLE = 1e-5
"""Share of the largest probability below which the grid's ends are cut."""


class CapacityPrior(Struct, frozen=True):
    """Prior of ln(capacity): flat from `lowest` to `highest`, and a normal density around `centre` if it is known.

    `cold`: the system is known to need time until it is at full speed. `fixed_share`: that of other cells of the
    system, if it is known. `noise`: probabilities of SIGMAS that other cells of the map show; empty if there are none.
    `warm_ups`: of a cold system, probabilities of WARM_UPS_S that its other cells show; empty if there are none.
    `requested_s`: seconds on all cores that the requested work on one message takes. `grows`: the capacity is that of
    batches that may grow as long as they like, so that their fixed cost takes no part of it; otherwise that of batches
    that keep their interval.
    """

    lowest: float
    highest: float
    centre: float | None = None
    sd: float = 0.5
    cold: bool = False
    fixed_share: float | None = None
    noise: tuple[float, ...] = ()
    warm_ups: tuple[float, ...] = ()
    requested_s: float = 0.0
    grows: bool = False


class CapacityPosterior(Struct, frozen=True, eq=False):
    """Probabilities over ln(capacity); the expected noise and fixed share, and the probability of a warm-up."""

    thetas: Grid
    mass: Grid
    masses: Grid
    """the same for each part of the explainable loss that other work may have caused"""
    noise: float
    noise_likelihood: tuple[float, ...]
    """of each of SIGMAS, the highest 1: the trials' evidence without the prior of the noise"""
    warm_up_likelihood: tuple[float, ...]
    """of each of WARM_UPS_S, the highest 1: the trials' evidence without the prior"""
    fixed_share: float
    fixed_share_sd: float
    """standard deviation of the fixed share"""
    warming: float
    """probability that the system was not at full speed in the last trial"""

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the capacities in messages/s below which the probability is each of `shares` (0 to 1)."""
        return _quantiles(self.thetas, self.mass, shares)

    def interval(self, inflation: float) -> tuple[float, float, float]:
        """Return (low, median, high): the 95 % interval, its half-widths of ln(rate) times `inflation`.

        It holds whichever part of the explainable loss other work caused.
        """
        middle = self.quantiles(0.5)[0]
        lows, highs = zip(*(_quantiles(self.thetas, mass, (0.025, 0.975)) for mass in self.masses), strict=True)
        low, high = min(lows), max(highs)
        return middle * (low / middle) ** inflation, middle, middle * (high / middle) ** inflation


def _quantiles(thetas: Grid, mass: Grid, shares: Sequence[float]) -> tuple[float, ...]:
    """Return the capacities below which these shares of a mass over ln(capacity) are."""
    cumulated = np.cumsum(mass)
    return tuple(float(np.exp(np.interp(share * cumulated[-1], cumulated, thetas))) for share in shares)


def capacity_posterior(prior: CapacityPrior, readings: Sequence[Reading], *, batches: bool) -> CapacityPosterior:
    """Return the posterior after the readings of all trials.

    Args:
        prior: The prior.
        readings: Of the trials; those of several trials beside other work are merged.
        batches: True for a system that works in batches, whose fixed share is unknown.
    """
    shares = FIXED_SHARES if batches and any(each.ratio != 1 for each in readings) else (FIXED_SHARES[:1])
    youngest = min((reading.age for reading in readings), default=0.0)
    warm_ups = [each for each in WARM_UPS_S if each == 0 or each > youngest]
    thetas = np.linspace(math.log(prior.lowest), math.log(prior.highest), COARSE_POINTS)
    mass = _probabilities(thetas, prior, readings, shares, warm_ups).sum(axis=(0, 1, 2, 3))
    inside = np.flatnonzero(mass > NEGLIGIBLE * mass.max())
    low, high = thetas[max(0, inside[0] - 1)], thetas[min(len(thetas) - 1, inside[-1] + 1)]
    thetas = np.linspace(low, high, FINE_POINTS)
    of_losses = _probabilities(thetas, prior, readings, shares, warm_ups)
    joint = of_losses.sum(axis=0) / of_losses.sum()
    by_share, by_noise = joint.sum(axis=(0, 2, 3)), joint.sum(axis=(0, 1, 3))
    likelihood = by_noise / _noise_weights(prior)
    by_warm_up = joint.sum(axis=(1, 2, 3)) / _warm_up_weights(prior, warm_ups)
    of_warm_ups = [by_warm_up[warm_ups.index(each) if each in warm_ups else 0] for each in WARM_UPS_S]
    share = float((by_share * shares).sum())
    last = max((reading.age for reading in readings), default=0.0)
    return CapacityPosterior(
        thetas,
        joint.sum(axis=(0, 1, 2)),
        of_losses.sum(axis=(1, 2, 3)),
        noise=float((by_noise * SIGMAS).sum()),
        noise_likelihood=tuple(np.round(likelihood / likelihood.max(), 4).tolist()),
        warm_up_likelihood=tuple((of_warm_ups / by_warm_up.max()).round(4).tolist()),
        fixed_share=share,
        fixed_share_sd=math.sqrt(float((by_share * (shares - share) ** 2).sum())),
        warming=float(sum(joint[index].sum() for index, each in enumerate(warm_ups) if each > last)),
    )


def _probabilities(
    thetas: Grid, prior: CapacityPrior, readings: Sequence[Reading], shares: Grid, warm_ups: Sequence[float]
) -> Grid:
    """Return probabilities of shape (LOSS_SHARES or 1, warm-ups, fixed shares, noises, capacities), not normalised."""
    density = np.ones_like(thetas)
    if prior.centre is not None:
        density = np.exp(-0.5 * ((thetas - math.log(prior.centre)) / prior.sd) ** 2) + PRIOR_FLOOR
    of_shares = np.ones_like(shares)
    if prior.fixed_share is not None:
        of_shares = np.exp(-0.5 * ((shares - prior.fixed_share) / SHARE_SD) ** 2) + PRIOR_FLOOR
    sigmas = np.log(_noise_weights(prior)) + _log_likelihood_of_noise(readings, batches=len(shares) > 1)
    base = np.log(density)[None, None, :] + sigmas[None, :, None] + np.log(of_shares)[:, None, None]
    doubtful = any(each.doubt for each in readings)
    losses = list(zip(LOSS_SHARES, LOSS_WEIGHTS, strict=True)) if doubtful else [(0.0, 1.0)]

    def add_up(warm_up: float, caused: float) -> Grid:
        speeds = [_speed(each, warm_up, prior.requested_s) for each in readings]
        each_one = (
            _log_likelihood(thetas, each, shares, speed, caused, grows=prior.grows)
            for each, speed in zip(readings, speeds, strict=True)
        )
        return np.asarray(sum(each_one, base))

    cases = list(zip(warm_ups, _warm_up_weights(prior, warm_ups), strict=True))
    stacked = np.stack(
        [np.stack([add_up(warm_up, caused) + math.log(known) for warm_up, known in cases]) for caused, _ in losses]
    )
    of_each = np.exp(stacked - stacked.max(axis=(1, 2, 3, 4), keepdims=True))
    of_each /= of_each.sum(axis=(1, 2, 3, 4), keepdims=True)
    return np.asarray(of_each * np.reshape([weight for _, weight in losses], (-1, 1, 1, 1, 1)))


def expected_speed(reading: Reading, warm_ups: Sequence[float], requested_s: float) -> float:
    """Return the mean speed at a reading of a system that was started cold, as a share of its speed when warm.

    Args:
        reading: Of one trial.
        warm_ups: Probabilities of WARM_UPS_S that other cells show; empty if there are none.
        requested_s: Seconds on all cores that the requested work on one message takes, at any speed.
    """
    weights = warm_ups if len(warm_ups) == len(WARM_UPS_S) else COLD_WEIGHTS
    return sum(weight * _speed(reading, each, requested_s) for weight, each in zip(weights, WARM_UPS_S, strict=True))


def _warm_up_weights(prior: CapacityPrior, warm_ups: Sequence[float]) -> Grid:
    """Return the prior of each of `warm_ups`; those that were over before the first trial count as none."""
    usual = COLD_WEIGHTS if prior.cold else WARM_UP_WEIGHTS
    weights = dict(zip(WARM_UPS_S, prior.warm_ups if len(prior.warm_ups) == len(WARM_UPS_S) else usual, strict=True))
    later = [weights[each] for each in warm_ups[1:]]
    return np.array([sum(weights.values()) - sum(later), *later])


def _speed(reading: Reading, warm_up: float, requested_s: float) -> float:
    """Return the speed at a reading, as a share of that when warm, of a system that needs `warm_up` seconds."""
    if reading.age >= warm_up:
        return 1.0
    share = COLD_SHARE + (1 - COLD_SHARE) * reading.age / warm_up
    requested = min(1.0, requested_s * reading.rate / reading.ratio)
    return requested + (1 - requested) * share


def _noise_weights(prior: CapacityPrior) -> Grid:
    return np.array(prior.noise) if len(prior.noise) == len(SIGMAS) else SIGMA_WEIGHTS


def _log_likelihood_of_noise(readings: Sequence[Reading], *, batches: bool) -> Grid:
    """Return ln L of each noise by the scatter of slices within the trials; their root mean square counts.

    With `batches` it is a lower limit as well as an upper one, if several trials show more than pauses do.
    """
    spreads = [reading.spread for reading in readings if reading.spread is not None]
    if not spreads:
        return np.zeros_like(SIGMAS)
    shown = math.sqrt(sum(each * each for each in spreads) / len(spreads))
    certain = shown - PAUSE_SPREAD if sum(each > PAUSE_SPREAD for each in spreads) >= UNSTEADY_TRIALS else 0.0
    beyond = np.maximum(0.0, np.log(SIGMAS / (SPREAD_FACTOR * max(MIN_SPREAD, shown))))
    if batches and certain > 0:
        beyond += np.maximum(0.0, np.log(SPREAD_FACTOR * certain / SIGMAS))
    return np.asarray(-0.5 * (beyond / SPREAD_SD) ** 2)


def _log_likelihood(  # noqa: PLR0913  everything that a reading depends on
    thetas: Grid, reading: Reading, shares: Grid, speed: float, caused: float, *, grows: bool
) -> Grid:
    """Return ln L of shape (fixed shares, noises, capacities), of a system at `speed`, as a share of its full speed.

    Other work caused the part `caused` of the loss that it explains.
    At full speed and without other work the same messages would have taken less time by these factors. Whether this is
    true of the fixed part of a batch, too, is not known: the estimate lies between both, as far from one as from the
    other.
    """
    left = reading.left(caused)
    sd = np.sqrt(SIGMAS**2 / reading.seconds + MIN_SD**2)[None, :, None]
    ratio = reading.ratio * speed * left
    possible = shares < ratio
    above_fixed = np.where(possible, ratio - shares, 1.0)
    without_fixed = np.where(possible, (reading.ratio - shares) * speed * left, 1.0)
    of_interval = np.ones_like(shares) if grows else 1 - shares
    middles = np.where(possible, np.log(reading.rate * of_interval / np.sqrt(above_fixed * without_fixed)), math.inf)
    between = np.log(without_fixed / above_fixed) / 2
    if reading.kind != "estimate":
        z = (thetas[None, None, :] - middles[:, None, None]) / (sd * (ratio / above_fixed)[:, None, None])
        sustained = 1 - (1 - _phi(z + LENIENCE)) ** reading.tries
        probability = sustained if reading.kind == "at least" else _phi(-z)
        return np.asarray(np.log(probability + OUTLIER_DENSITY))
    slope = 1 / above_fixed if grows else np.abs(1 - ratio) / (above_fixed * (1 - shares))
    step = SHARE_STEP / math.sqrt(12) * slope if len(shares) > 1 else 0.0
    beyond = STARVED_EXCESS_SD if reading.starved else EXCESS_SD
    far = beyond * reading.excess * (1 + reading.excess) + EXTRAPOLATION_SD * max(0.0, -math.log(reading.ratio))
    far += LOSS_SHARE_SD * reading.doubt / left
    cold = COLD_SD * (1 - speed)
    other = np.reshape(step**2 + far**2 + between**2 + cold**2, (-1, 1, 1))
    wide = np.sqrt((sd * (ratio / above_fixed)[:, None, None]) ** 2 + other)
    z = (thetas[None, None, :] - np.where(possible, middles, 0.0)[:, None, None]) / wide
    density = np.where(possible[:, None, None], np.exp(-0.5 * z * z) / wide, 0.0)
    weights = np.ones_like(shares) if grows or len(shares) == 1 else _stretch_weights(reading, shares)
    return np.asarray(np.log(density * weights[:, None, None] + OUTLIER_DENSITY))


def _stretch_weights(reading: Reading, shares: Grid) -> Grid:
    """Return the weight of each fixed share for batches that are longer than their interval.

    Batches of a system that pulls grow until they keep the offered rate. So any fixed share close to zero gives that
    rate as the capacity, and trials at nearly one rate agree by that. But batches with such a share are seldom found in
    such a state: where they are in equilibrium, a change of the capacity by 1 % changes their length by
    (ratio - share) / share percent. Batches that queue up instead, as those of a receiver, have the weight 1.
    """
    if reading.ratio <= 1:
        return np.ones_like(shares)
    growing = min(1.0, max(0.0, 1 - reading.excess / math.log(reading.ratio)))
    weights = shares / (reading.ratio - shares) / STRETCH_RATIO
    return np.asarray(np.clip(weights, MIN_STRETCH_WEIGHT, 1.0) ** growing)


def _phi(z: Grid) -> Grid:
    """Return the normal distribution function, by the approximation 26.2.17 of Abramowitz and Stegun (1964)."""
    size = np.abs(z)
    t = 1 / (1 + 0.2316419 * size)
    series = 0.127414796 + t * (-0.142248368 + t * (0.710706871 + t * (-0.726576013 + t * 0.530702714)))
    tail = np.exp(-0.5 * size**2) * t * series
    return np.asarray(np.where(z >= 0, 1 - tail, tail))
