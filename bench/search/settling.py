"""The time at the beginning of a trial that is not measured."""

import math

from msgspec.structs import replace

from bench.analysis.capacity_reading import Reading
from bench.model.measurement import PlannedTrial
from bench.search.parameters import SearchParameters
from bench.search.problem import SearchProblem

ROUNDING_S = 0.1
"""Steps of the times of a planned trial."""


def shortest_settle(problem: SearchProblem, parameters: SearchParameters) -> float:
    """Return the seconds until a trial shows its rate: the scenario's own time, or else one batch at least."""
    shortest = max(parameters.settle, parameters.settle_batches * problem.batch_interval)
    return shortest if problem.timing.settle is None else float(problem.timing.settle)


def settle_seconds(problem: SearchProblem, parameters: SearchParameters, rate: float) -> float:
    """Return the seconds until a trial at `rate` messages/s shows what the system sustains.

    At a high rate of bytes that is the time in which it uses up the memory that the trials before have left: new memory
    costs more (see docs/decisions/0215).
    """
    shortest, bytes_hz = shortest_settle(problem, parameters), rate * problem.cell.message_bytes
    if problem.timing.settle is not None or bytes_hz < parameters.settle_byte_rate:
        return shortest
    return max(shortest, math.ceil(10 * parameters.settle_bytes / bytes_hz) / 10)


def is_settled(problem: SearchProblem, parameters: SearchParameters, planned: PlannedTrial) -> bool:
    """Return False for a trial that was begun sooner, since it was only to find the range of the rate."""
    return planned.settle >= settle_seconds(problem, parameters, planned.rate) - ROUNDING_S


def bound_of(reading: Reading, parameters: SearchParameters) -> Reading:
    """Return the bound that remains of the reading of a trial that was not settled: it may show too much."""
    if reading.kind == "at least":
        return replace(reading, rate=reading.rate / parameters.quick_factor)
    return replace(reading, kind="at most")
