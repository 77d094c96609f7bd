"""What the trials of a search say of each objective by itself: its own posterior over the same trials.

The search looks for the rate at which all are kept. Where one of them binds, the others get wide or open intervals: nothing was
tried near their own ceilings, and that is said.
"""

from collections.abc import Sequence

from msgspec import Struct

from bench.analysis.stability import Drift
from bench.config.scenario import Objectives
from bench.model.measurement import Measurement, ObjectiveResult
from bench.search.observations import Observations
from bench.search.posterior import Kind, Observation, Prior


class Look(Struct, frozen=True):
    """A whole trial (its series left out), and what its counters said."""

    seen: Measurement
    drift: Drift


def each_objective(
    looks: Sequence[Look], objectives: Objectives, prior: Prior, inflation: float
) -> tuple[ObjectiveResult, ...]:
    """For backlog, loss and, where one is set, p99: estimate and 95 % interval in messages/s; a side that was not tried is None."""
    names = ["backlog", "loss", *(["p99"] if objectives.p99 is not None else [])]
    return tuple(_result(name, looks, objectives, prior, inflation=inflation) for name in names)


def _result(
    name: str, looks: Sequence[Look], objectives: Objectives, prior: Prior, *, inflation: float
) -> ObjectiveResult:
    seen = [found for look in looks if (found := _observation(name, look, objectives)) is not None]
    cached_resource = [found.rate for found in seen if found.kind == "at least"]
    if not seen:
        return ObjectiveResult(name)
    if all(found.kind == "at least" for found in seen):
        return ObjectiveResult(name, low_hz=max(cached_resource), kept_hz=max(cached_resource))
    low, middle, high = Observations.of(prior).after(*seen).quantiles(0.025, 0.5, 0.975)
    return ObjectiveResult(
        name,
        middle,
        middle * (low / middle) ** inflation,
        middle * (high / middle) ** inflation,
        max(cached_resource, default=None),
    )


def _observation(name: str, look: Look, objectives: Objectives) -> Observation | None:
    """What one trial says of one objective; None when it says nothing."""
    rate, seconds, drift = look.seen.planned.rate, max(look.drift.seconds, 1.0), look.drift
    if name == "backlog":
        if drift.overloaded and drift.loss > 0:
            return Observation("reading", rate * (1 - drift.loss), seconds, drift.slices, drift.slice_seconds)
        return Observation("at least", rate, seconds)
    p99 = look.seen.from_due.p99
    if name == "p99":
        assert objectives.p99 is not None
        return None if p99 is None else Observation(_side(cached_resource=p99 <= objectives.p99), rate, seconds)
    if not look.seen.drained:
        return None  # what still waits is not lost
    wrong = look.seen.failed + look.seen.lost + look.seen.duplicated + look.seen.corrupted + look.seen.out_of_order
    return Observation(_side(cached_resource=wrong <= objectives.loss), rate, seconds)


def _side(*, cached_resource: bool) -> Kind:
    return "at least" if cached_resource else "at most"
