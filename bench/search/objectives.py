"""Results of each objective by itself: for each one a posterior of its own over the same trials.

The search looks for the rate at which all objectives are met. Where one of them binds, the intervals of the others
are wide or open, since no trial was made near their own limits.
"""

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from bench.analysis.capacity_reading import Reading, ReadingKind
from bench.analysis.stability import Stability
from bench.config.scenario import Objectives
from bench.model.measurement import Measurement, ObjectiveResult
from bench.search.posterior import CapacityPrior, capacity_posterior


class AssessedTrial(Struct, frozen=True):
    """A trial, without its series of counters, and the stability that they showed."""

    measurement: Measurement
    stability: Stability
    backlogged: bool = False
    """whether the verdict is that its backlog or its batches grew, or that the source pushed back"""


def estimate_objectives(
    trials: Sequence[AssessedTrial], objectives: Objectives, lowest: float, inflation: float
) -> tuple[ObjectiveResult, ...]:
    """Return the estimate and the 95 % interval of the highest rate that meets each objective, in messages/s.

    Args:
        trials: All trials but the warm-ups.
        objectives: The scenario's objectives; backlog and loss always count, p99 where it is set.
        lowest: Lowest rate of the search in messages/s.
        inflation: Factor on the half-widths of ln(interval).

    Returns:
        A result for each objective. An end of the interval on whose side there was no trial is None.
    """
    names = ["backlog", "loss", *(["p99"] if objectives.p99 is not None else [])]
    return tuple(_estimate(name, trials, objectives, lowest, inflation=inflation) for name in names)


def _estimate(
    name: str, trials: Sequence[AssessedTrial], objectives: Objectives, lowest: float, *, inflation: float
) -> ObjectiveResult:
    observations = [one for trial in trials if (one := _observe(name, trial, objectives)) is not None]
    met = [one.rate for one in observations if one.kind == "at least"]
    if not observations:
        return ObjectiveResult(name)
    if len(met) == len(observations):
        return ObjectiveResult(name, low_hz=max(met), kept_hz=max(met))
    rates = [one.rate for one in observations]
    centre = median(one.rate for one in observations if one.kind != "at least")
    prior = CapacityPrior(min(lowest, *rates) / 2, 8 * max(rates), centre)
    low, middle, high = capacity_posterior(prior, observations, batches=False).interval(inflation)
    return ObjectiveResult(name, middle, low, high, max(met, default=None))


def _observe(name: str, trial: AssessedTrial, objectives: Objectives) -> Reading | None:
    """Return the observation that one trial gives of one objective; None if it gives none."""
    measurement, stability = trial.measurement, trial.stability
    rate, seconds = measurement.planned.rate, max(stability.seconds, 1.0)
    if name == "backlog":
        if stability.overloaded and stability.loss > 0:
            estimate = rate * (1 - stability.loss)
            return Reading("estimate", estimate, seconds=seconds)
        if trial.backlogged:
            return Reading("at most", rate, seconds=seconds)
        return Reading("at least", rate, seconds=seconds) if measurement.drained else None
    p99 = measurement.from_due.p99
    if name == "p99":
        assert objectives.p99 is not None
        return None if p99 is None else Reading(_bound(met=p99 <= objectives.p99), rate, seconds=seconds)
    if not measurement.drained:
        return None  # messages that still wait are not lost
    counts = (measurement.failed, measurement.lost, measurement.duplicated, measurement.corrupted)
    wrong = sum(counts) + measurement.out_of_order
    return Reading(_bound(met=wrong <= objectives.loss), rate, seconds=seconds)


def _bound(*, met: bool) -> ReadingKind:
    return "at least" if met else "at most"
