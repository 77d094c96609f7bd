"""The metrics of a job over an interval, and the true rates of its operators that follow from useful time.

Useful time is what an instance spends on deserialising, processing and serialising records; waiting for input, and for
space in the buffers behind it, is not. Records divided by useful time are the *true* rate of an instance: the rate that
it would have if it never waited. After Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling
decisions for distributed streaming dataflows" (OSDI 2018), whose equations are named below.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile
from typing import Literal

from msgspec import Struct

Parallelism = Mapping[str, int]
"""Instances by operator."""
Aggregator = Literal["avg", "max"]


class InstanceSample(Struct, frozen=True):
    """The work of one instance of an operator within an interval."""

    processed: float
    """records"""
    emitted: float
    """records"""
    useful_s: float
    """seconds of deserialising, processing and serialising"""
    backpressure_s: float = 0.0
    """seconds for which it made the sources stop"""
    queued: float = 0.0
    """records that wait before it at the end of the interval"""


class Sample(Struct, frozen=True):
    """The metrics of a job over one interval; the sources' by source, the instances' by operator."""

    at: float
    """the end of the interval, in seconds since the job started"""
    seconds: float
    offered: Mapping[str, float]
    """records/s that are due: the target rate"""
    taken: Mapping[str, float]
    """records/s that the job took"""
    operators: Mapping[str, tuple[InstanceSample, ...]]
    backlog: Mapping[str, float] = {}
    """records that wait at the sources at the end"""

    @property
    def parallelism(self) -> dict[str, int]:
        """Return the instances of each operator."""
        return {name: len(instances) for name, instances in self.operators.items()}

    @property
    def begin(self) -> float:
        """Return when the interval began, in seconds since the job started."""
        return self.at - self.seconds

    def busy(self, operator: str) -> float:
        """Return the mean share of the interval that the instances of an operator were useful."""
        instances = self.operators[operator]
        return sum(one.useful_s for one in instances) / (len(instances) * self.seconds)

    @property
    def target_rate_ratio(self) -> float:
        """Return the largest ratio of offered to taken of any source; 1 where nothing is offered."""
        ratios = [
            rate / self.taken[name] if self.taken[name] > 0 else float("inf")
            for name, rate in self.offered.items()
            if rate > 0
        ]
        return max(ratios, default=1.0)


class OperatorRates(Struct, frozen=True):
    """The true rates of an operator: records/s of all its instances together, if none of them waited."""

    processing: float
    output: float
    instances: int


def true_rates(instances: Sequence[InstanceSample], aggregator: Aggregator = "avg") -> OperatorRates | None:
    """Return the true rates of an operator.

    Args:
        instances: The work of each of its instances.
        aggregator: "avg" adds up the true rates of the instances (Eq. 1, 2, 5, 6). Instances that processed nothing
            count as the mean of the others. "max" divides what all processed by the useful time of the busiest one:
            with skew this one is the limit (`busy-time.aggregator` of Flink's autoscaler).

    Returns:
        The rates; None if no instance processed anything, so that no rate is known.
    """
    known = [one for one in instances if one.processed > 0 and one.useful_s > 0]
    if not known:
        return None
    if aggregator == "max":
        longest = max(one.useful_s for one in known)
        processed, emitted = (sum(one.processed for one in known), sum(one.emitted for one in known))
        return OperatorRates(processed / longest, emitted / longest, len(instances))
    share = len(instances) / len(known)
    processing = share * sum(one.processed / one.useful_s for one in known)
    output = share * sum(one.emitted / one.useful_s for one in known)
    return OperatorRates(processing, output, len(instances))


def split_by_parallelism(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Return the samples in groups without a change of parallelism between them, in order."""
    return [list(group) for _, group in groupby(samples, key=lambda sample: sample.parallelism)]


def samples_since_change(samples: Sequence[Sample], running: Parallelism, warm_up_s: float = 0.0) -> list[Sample]:
    """Return the samples since the last change of parallelism.

    Args:
        samples: All intervals of the job so far.
        running: The instances that run now.
        warm_up_s: Intervals that began earlier after the change are left out.
    """
    now = dict(running)
    own = list(takewhile(lambda sample: sample.parallelism == now, reversed(samples)))[::-1]
    return [sample for sample in own if sample.begin >= own[0].begin + warm_up_s - 1e-9]
