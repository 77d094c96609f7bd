"""When messages are due: an open loop, fixed before the load starts and blind to what the system does with it."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Schedule(Protocol):
    """Due times in seconds after the start of a trial, in ascending order."""

    def count(self, elapsed: float) -> int:
        """How many messages are due by `elapsed`."""

    def due(self, first: int, last: int) -> NDArray[np.float64]:
        """The due times of messages `first` up to but not including `last`."""


class Constant:
    """One message every 1/rate seconds, the first after half of that, none after `seconds`."""

    def __init__(self, rate: float, seconds: float) -> None:
        self._rate, self._total = rate, int(rate * seconds + 0.5)

    def count(self, elapsed: float) -> int:
        return max(0, min(self._total, int(elapsed * self._rate + 0.5)))

    def due(self, first: int, last: int) -> NDArray[np.float64]:
        return (np.arange(first, last, dtype=np.float64) + 0.5) / self._rate


def schedule_of(arrivals: str, rate: float, seconds: float) -> Schedule:
    """The schedule of that name (constant is the only one yet)."""
    if arrivals != "constant":
        raise ValueError(f"arrivals: {arrivals!r} is not a schedule; known: constant")
    return Constant(rate, seconds)
