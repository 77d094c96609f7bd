"""How fast something counts up: a rate over the end of a run, without its warm-up."""

import time
from collections.abc import Callable

WARM_UP = 0.3
"""Seconds that are left out: connections, first allocations, an empty queue that fills."""


class RateMeter:
    """Told of a counter again and again; `rate` is counts per second between the warm-up and the last look.

    A loop that is measured asks `keep_measuring` with its counter in every turn, and ends when that says no.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._began = -1.0
        self._first: tuple[float, int] | None = None
        self._last = (0.0, 0)

    def keep_measuring(self, count: int) -> bool:
        """Take in the counter now; whether the time is not over yet."""
        now = self._clock()
        self.record(now, count)
        return now < self._began + self.seconds

    def record(self, now: float, count: int) -> None:
        """Take in what the counter was at a moment."""
        if self._began < 0:
            self._began = now
        if self._first is None and now >= self._began + min(WARM_UP, self.seconds / 3):
            self._first = (now, count)
        self._last = (now, count)

    @property
    def rate(self) -> float:
        """Counts per second; 0 while there is nothing to divide."""
        if self._first is None or self._last[0] <= self._first[0]:
            return 0.0
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])


def stamp(number: int) -> bytes:
    """64 bytes that tell a message's number and when it was sent: what a bare loop writes, as the load writes its headers."""
    return b"%032d%032d" % (number, time.monotonic_ns())
