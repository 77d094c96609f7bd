"""Results of each objective by itself: for each one a posterior of its own over the same trials.

The search looks for the rate at which all objectives are met. Where one of them binds, the intervals of the others
are wide or open, since no trial was made near their own limits.
"""

from collections.abc import Sequence

from msgspec import Struct

from bench.analysis.stability import Stability
from bench.config.scenario import Objectives
from bench.model.measurement import Measurement, ObjectiveResult
from bench.search.observations import Observations
from bench.search.posterior import Kind, Observation, Prior


class AssessedTrial(Struct, frozen=True):
    """A trial, without its series of counters, and the stability that they showed."""

    measurement: Measurement
    stability: Stability


def estimate_objectives(
    trials: Sequence[AssessedTrial], objectives: Objectives, prior: Prior, inflation: float
) -> tuple[ObjectiveResult, ...]:
    """Return the estimate and the 95 % interval of the highest rate that meets each objective, in messages/s.

    Args:
        trials: All trials but the warm-ups.
        objectives: The scenario's objectives; backlog and loss always count, p99 where it is set.
        prior: The prior of the search.
        inflation: Factor on the half-widths of ln(interval).

    Returns:
        A result for each objective. An end of the interval on whose side there was no trial is None.
    """
    names = ["backlog", "loss", *(["p99"] if objectives.p99 is not None else [])]
    return tuple(_estimate(name, trials, objectives, prior, inflation=inflation) for name in names)


def _estimate(
    name: str, trials: Sequence[AssessedTrial], objectives: Objectives, prior: Prior, *, inflation: float
) -> ObjectiveResult:
    observations = [one for trial in trials if (one := _observe(name, trial, objectives)) is not None]
    met = [one.rate for one in observations if one.kind == "at least"]
    if not observations:
        return ObjectiveResult(name)
    if len(met) == len(observations):
        return ObjectiveResult(name, low_hz=max(met), kept_hz=max(met))
    low, middle, high = Observations.of(prior).add(*observations).quantiles(0.025, 0.5, 0.975)
    return ObjectiveResult(
        name,
        middle,
        middle * (low / middle) ** inflation,
        middle * (high / middle) ** inflation,
        max(met, default=None),
    )


def _observe(name: str, trial: AssessedTrial, objectives: Objectives) -> Observation | None:
    """Return the observation that one trial gives of one objective; None if it gives none."""
    measurement, stability = trial.measurement, trial.stability
    rate, seconds = measurement.planned.rate, max(stability.seconds, 1.0)
    if name == "backlog":
        if stability.overloaded and stability.loss > 0:
            estimate = rate * (1 - stability.loss)
            return Observation("estimate", estimate, seconds, stability.slice_rates, stability.slice_seconds)
        return Observation("at least", rate, seconds)
    p99 = measurement.from_due.p99
    if name == "p99":
        assert objectives.p99 is not None
        return None if p99 is None else Observation(_bound(met=p99 <= objectives.p99), rate, seconds)
    if not measurement.drained:
        return None  # messages that still wait are not lost
    counts = (measurement.failed, measurement.lost, measurement.duplicated, measurement.corrupted)
    wrong = sum(counts) + measurement.out_of_order
    return Observation(_bound(met=wrong <= objectives.loss), rate, seconds)


def _bound(*, met: bool) -> Kind:
    return "at least" if met else "at most"
