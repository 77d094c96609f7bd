"""Intervals of results as statistics: which are confidence intervals, and the logarithm of a rate with its error.

Assumption: ln(rate) is normal on each side of the estimate, with the standard deviation that this side of a 95 %
interval reports. A bound is a one-sided interval. A bracket (two rates that were tried) says nothing about the
probability of what lies outside it, so it has no standard deviation.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

from msgspec import Struct
from msgspec.structs import replace

from bench.model.measurement import Result

NOMINAL = 0.95
"""Nominal coverage of the interval of a result."""
Z = NormalDist().inv_cdf((1 + NOMINAL) / 2)
"""Half of the width of such an interval, in standard deviations of a normal law."""
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Half of the width of such an interval of a mean with 1, 2, ... degrees of freedom, in standard errors."""
MIN_SD = 0.01
"""Least standard deviation of ln(rate): two runs of one cell differ by more than their intervals show (a warm cache,
another port)."""
TAIL_FACTOR = 1.2
"""Factor on the standard deviation of a difference: errors of a few trials have longer tails than a normal law. Of 40
maps of 12 equal cells 3 showed a change without it, and none with it; docs/decisions/0231 has figures for leads."""
NO_CONFIDENCE = "brackets are no confidence intervals"


class LogRate(Struct, frozen=True):
    """The logarithm of a rate in messages/s, and its standard deviation below and above; None where that side is open.

    A bound has only the side on which it limits the rate.
    """

    middle: float
    down: float | None
    up: float | None


def name_intervals(results: Sequence[Result], *, calibrated: bool) -> list[Result]:
    """Return results of a run with the fields that older versions did not write.

    Those are the kind of the interval, and the status `measured` of a calibrated one with both ends that was called
    `lower-bound` because the budget was spent. The estimate of such a bracket is its low end, so that it stays a bound.

    Args:
        results: The results of one run.
        calibrated: Whether the intervals of its search strategy contain the truth in 95 of 100 runs; otherwise they
            are brackets.
    """
    return [
        _name_interval(_with_current_status(result, calibrated=calibrated), calibrated=calibrated) for result in results
    ]


def _with_current_status(result: Result, *, calibrated: bool) -> Result:
    if result.status == "measured" and result.precision_reached is None:
        return replace(result, precision_reached=True)
    bounded = result.status == "lower-bound" and result.reason == "budget"
    if calibrated and bounded and result.high_hz and result.estimate_hz:
        return replace(result, status="measured", reason=None, precision_reached=False)
    return result


def _name_interval(result: Result, *, calibrated: bool) -> Result:
    if result.interval is not None:
        return result
    if result.low_hz is not None and result.high_hz is not None:
        return replace(result, interval="95 %" if calibrated else "bracket")
    bounded = result.low_hz is not None or result.high_hz is not None
    return replace(result, interval="bracket") if bounded and not calibrated else result


def has_bracket(result: Result) -> bool:
    """Return True if the ends of a result are no confidence limits."""
    both = result.low_hz is not None and result.high_hz is not None
    return result.interval == "bracket" or (both and result.interval is None)


def log_rate(result: Result) -> LogRate | None:
    """Return the logarithm of a measured rate or of a bound; None if there is none, or only a bracket.

    A bound is the limit of an interval, too: where its estimate is known, the error follows from both.
    """
    if result.status not in ("measured", "lower-bound", "upper-bound") or has_bracket(result):
        return None
    low, high = result.low_hz, result.high_hz
    if low and high:
        middle = min(max(result.estimate_hz or math.sqrt(low * high), low), high)
        return LogRate(
            math.log(middle), max(MIN_SD, math.log(middle / low) / Z), max(MIN_SD, math.log(high / middle) / Z)
        )
    if low:
        middle = max(result.estimate_hz or low, low)
        return LogRate(math.log(middle), max(MIN_SD, math.log(middle / low) / Z), None)
    if high:
        middle = min(result.estimate_hz or high, high)
        return LogRate(math.log(middle), None, max(MIN_SD, math.log(high / middle) / Z))
    return None


def student_quantile(freedom: int) -> float:
    """Return half of the width of the interval of a mean in standard errors, by Student's law.

    From eleven degrees of freedom on by the first terms of the expansion of Cornish and Fisher, which are 1 % too small
    at most.

    Args:
        freedom: Degrees of freedom, at least 1: one less than the number of values.
    """
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else Z + (Z**3 + Z) / (4 * freedom)
