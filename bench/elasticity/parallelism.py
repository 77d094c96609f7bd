"""The optimal parallelism of a dataflow: the fewest instances of each operator that keep up with the sources.

After Kalavri et al. (OSDI 2018), Eq. 7 and 8. The true rate of an operator is assumed to grow linearly with its
instances, and records to be spread evenly over them: skew is not modelled.
"""

import math
from collections.abc import Mapping, Sequence

from bench.elasticity.dataflow import Dataflow
from bench.elasticity.samples import OperatorRates

ROUNDING_SLACK = 1e-9
"""Excess over a whole number of instances that is a rounding error."""
MIN_SCALABILITY = 0.01


def required_instances(
    dataflow: Dataflow, rates: Mapping[str, OperatorRates], target: Mapping[str, float]
) -> dict[str, float]:
    """Return the instances that each operator needs, not rounded.

    What reaches an operator follows from the target rates and the selectivities alone, so one pass answers for all
    operators. Rounding upstream would count records that nobody sends: it is left to the end.

    Args:
        dataflow: The job.
        rates: True rates by operator.
        target: Records/s by source.
    """
    emitted, needed = dict(target), dict[str, float]()
    for operator in dataflow.operators:
        arriving, own = sum(emitted[name] for name in dataflow.upstream[operator]), rates[operator]
        needed[operator] = arriving * own.instances / own.processing
        emitted[operator] = arriving * own.output / own.processing
    return needed


def round_up(instances: float) -> int:
    """Return whole instances, one at least."""
    return max(1, math.ceil(instances - ROUNDING_SLACK))


def observed_scalability(points: Sequence[tuple[int, float]]) -> float:
    """Return the share of linear scaling that an operator has shown, 0.01 to 1, by least squares.

    It is the a that minimises the sum of (rate - a b p)^2, where b is the rate of an instance at the fewest instances
    (`observed-scalability` of Flink's autoscaler).

    Args:
        points: Instances and the true rate of all of them together, in records/s.
    """
    fewest, rate = min(points, default=(1, 0.0))
    if len({p for p, _ in points}) < 2 or rate <= 0:
        return 1.0
    base = rate / fewest
    share = sum(p * hz for p, hz in points) / (base * sum(p * p for p, _ in points))
    return min(1.0, max(MIN_SCALABILITY, share))
