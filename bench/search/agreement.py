"""Agreement of the trials of one cell on one capacity, as a function of their evidence."""

import math
from functools import partial
from operator import is_not
from statistics import median

from bench.analysis.capacity_reading import MAX_DOUBT, Reading
from bench.search.observations import Evidence
from bench.search.parameters import SearchParameters
from bench.search.posterior import WARM_UPS_S


def is_contradictory(evidence: Evidence) -> bool:
    """Return True if trials disagree by far more than their noise: the capacity is not one number.

    Not if they agree without a single long trial, in a part of which nothing was processed: a pause, or a counter that
    stood still, is no second capacity.
    """
    long = [each for each in evidence.readings if each is not None and _is_interrupted(each, evidence.parameters)]
    return _disagree(evidence) and all(_disagree(evidence.with_only(partial(is_not, each))) for each in long)


def _is_interrupted(reading: Reading, parameters: SearchParameters) -> bool:
    """Return True for a long overloaded trial in a part of which nothing was processed."""
    return reading.kind == "estimate" and reading.spread is None and reading.seconds >= parameters.long_trial


def _disagree(evidence: Evidence) -> bool:
    parameters = evidence.parameters
    warm = [each for each in evidence.known if not evidence.problem.cold or each.age > max(WARM_UPS_S)]
    if len(warm) <= parameters.max_contradictions:
        return False
    if _contrary_pairs(warm, parameters) > parameters.max_contradictions or _is_scattered(warm, evidence):
        return True
    middle = math.log(evidence.interval[1])
    wrong = sum(_contradicts(reading, middle, evidence) for reading in warm)
    return wrong > parameters.max_contradictions and 3 * wrong > len(warm)


def _is_scattered(readings: list[Reading], evidence: Evidence) -> bool:
    """Return True if long trials differ by far more than the noise within them: the capacity changes slowly.

    Not after a death: a framework that was started again is slow at first. Not beside much other work, which changes
    what is left of the capacity.
    """
    parameters = evidence.parameters
    spreads = [each.spread for each in readings if each.spread is not None]
    long = sum(each.seconds >= parameters.long_trial for each in readings)
    disturbed = any(each.beside == "processed" or each.doubt > MAX_DOUBT for each in readings)
    if evidence.deaths or disturbed or long < parameters.min_long_trials or not spreads:
        return False
    noise = evidence.with_only(lambda reading: reading.seconds >= parameters.long_trial).posterior.noise
    return noise > max(parameters.max_noise, parameters.max_noise_ratio * median(spreads))


def _contrary_pairs(readings: list[Reading], parameters: SearchParameters) -> int:
    """Return how many sustained trials have an own overloaded one that shows a clearly lower capacity.

    Clearly lower, whatever other work took. The noise is that within the calmer trials: a system that changes between
    two capacities is calm in a trial without such a change.
    """
    spreads = sorted(each.spread for each in readings if each.spread is not None)
    noise = max(parameters.typical_noise, 2 * spreads[len(spreads) // 4] if spreads else 0.0)
    noise *= parameters.contrary_sds
    kept = [each for each in readings if each.kind == "at least"]
    shown = [each for each in readings if each.near and each.excess <= parameters.max_contrary_excess]

    def is_contrary(high: Reading, low: Reading) -> bool:
        margin = noise * math.sqrt(1 / high.seconds + 1 / low.seconds)
        return math.log(high.rate / low.rate * low.ratio / high.ratio) > margin - math.log(low.left(1.0))

    sustained = sum(any(is_contrary(high, low) for low in shown) for high in kept)
    overloaded = sum(any(is_contrary(high, low) for high in kept) for low in shown)
    return min(sustained, overloaded)


def _contradicts(reading: Reading, middle: float, evidence: Evidence) -> bool:
    """Return True if a reading differs from ln(capacity) = `middle` by far more than the noise."""
    parameters, posterior = evidence.parameters, evidence.posterior
    shown = reading.log_capacity(posterior.fixed_share, grows=evidence.grows)
    noise = max(parameters.typical_noise, posterior.noise)
    margin = parameters.contradiction_sds * noise / math.sqrt(reading.seconds)
    if reading.kind == "estimate":
        if not reading.near or reading.excess > parameters.reading_sd:
            return False
        return abs(shown - middle) > margin - math.log(reading.left(1.0))
    distance = shown - middle
    return distance > margin if reading.kind == "at least" else -distance > margin
