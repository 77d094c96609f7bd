"""The rate of a counter, measured without its warm-up."""

import time
from collections.abc import Callable

WARM_UP_S = 0.3
"""Seconds that are left out: connections, first allocations, an empty queue that fills."""


class RateMeter:
    """The rate of a counter between the end of the warm-up and the last value recorded.

    A loop that is measured calls `keep_measuring` with its counter in every turn, and ends when that returns False.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._began = -1.0
        self._first: tuple[float, int] | None = None
        self._last = (0.0, 0)

    def keep_measuring(self, count: int) -> bool:
        """Record the counter now; return False once `seconds` are over."""
        now = self._clock()
        self.record(now, count)
        return now < self._began + self.seconds

    def record(self, now: float, count: int) -> None:
        """Record the counter's value at `now`, in seconds of any clock."""
        if self._began < 0:
            self._began = now
        if self._first is None and now >= self._began + min(WARM_UP_S, self.seconds / 3):
            self._first = (now, count)
        self._last = (now, count)

    @property
    def rate(self) -> float:
        """Counts per second; 0 as long as fewer than two values were recorded after the warm-up."""
        if self._first is None or self._last[0] <= self._first[0]:
            return 0.0
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])


def stamp(number: int) -> bytes:
    """Return 64 bytes with a message's number and send time: a baseline producer's stand-in for the header."""
    return b"%032d%032d" % (number, time.monotonic_ns())
