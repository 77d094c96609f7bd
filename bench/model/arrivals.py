"""Schedules of due times: an open loop, fixed before the load starts, whatever the system under test does.

A schedule answers for any message in any order, with the same times in every process. Several workers can therefore
each take a share of one schedule, and the shares together are the schedule.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Profile = Sequence[tuple[float, float]]
"""The steps of one period, each (seconds, relative rate); the period repeats until the trial ends."""

SLOT_MESSAGES = 2048
"""Expected messages in a slot of a Poisson schedule; each slot is drawn independently of those before."""


class Schedule(Protocol):
    """Due times in seconds after the start of a trial, in ascending order."""

    def count(self, elapsed: float) -> int:
        """Return how many messages are due by `elapsed` seconds."""

    def due(self, first: int, last: int, step: int = 1) -> Times:
        """Return the due times of messages first, first + step ... up to but not including `last`."""


class ConstantSchedule:
    """One message every 1/rate seconds, the first after half of that, none after `seconds`."""

    def __init__(self, rate: float, seconds: float) -> None:
        self._rate, self._total = rate, int(rate * seconds + 0.5)

    def count(self, elapsed: float) -> int:
        """Return how many messages are due by `elapsed` seconds."""
        return max(0, min(self._total, int(elapsed * self._rate + 0.5)))

    def due(self, first: int, last: int, step: int = 1) -> Times:
        """Return the due times of messages first, first + step ... up to but not including `last`."""
        return (np.arange(first, last, step, dtype=np.float64) + 0.5) / self._rate


class ProfiledSchedule:
    """A rate that changes in steps, with mean `rate` over a period; messages are evenly spaced within a step."""

    def __init__(self, rate: float, seconds: float, profile: Profile) -> None:
        lengths, factors = (np.array(column, dtype=np.float64) for column in zip(*profile, strict=True))
        self._times = np.concatenate([[0.0], np.cumsum(lengths)])
        counts = np.concatenate([[0.0], np.cumsum(lengths * factors)])
        self._period = float(self._times[-1])
        self._counts = counts * (rate * self._period / counts[-1])
        self._period_count = float(self._counts[-1])
        self._total = int(self._count_expected(seconds) + 0.5)

    def count(self, elapsed: float) -> int:
        """Return how many messages are due by `elapsed` seconds."""
        return max(0, min(self._total, int(self._count_expected(elapsed) + 0.5))) if elapsed > 0 else 0

    def due(self, first: int, last: int, step: int = 1) -> Times:
        """Return the due times of messages first, first + step ... up to but not including `last`."""
        wanted = np.arange(first, last, step, dtype=np.float64) + 0.5
        periods = np.floor(wanted / self._period_count)
        within: Times = np.interp(wanted - periods * self._period_count, self._counts, self._times)
        return periods * self._period + within

    def _count_expected(self, elapsed: float) -> float:
        periods = elapsed // self._period
        within = np.interp(elapsed - periods * self._period, self._times, self._counts)
        return float(periods * self._period_count + within)


class PoissonSchedule:
    """Independent arrivals with mean `rate`: the count of each slot is drawn first, then the times within it."""

    def __init__(self, rate: float, seconds: float, seed: int) -> None:
        self._seed, self._slot = seed, min(seconds, SLOT_MESSAGES / rate)
        slots = max(1, int(np.ceil(seconds / self._slot - 1e-9)))
        lengths = np.full(slots, self._slot)
        lengths[-1] = seconds - self._slot * (slots - 1)
        counts = np.random.default_rng([seed, 0]).poisson(rate * lengths)
        self._lengths, self._before = lengths, np.concatenate([[0], np.cumsum(counts)])
        self._times: Callable[[int], Times] = lru_cache(maxsize=4)(self._draw_slot)

    def count(self, elapsed: float) -> int:
        """Return how many messages are due by `elapsed` seconds."""
        if elapsed <= 0:
            return 0
        slot = int(elapsed / self._slot)
        if slot >= len(self._lengths):
            return int(self._before[-1])
        return int(self._before[slot] + np.searchsorted(self._times(slot), elapsed, side="right"))

    def due(self, first: int, last: int, step: int = 1) -> Times:
        """Return the due times of messages first, first + step ... up to but not including `last`; fewer at the end."""
        last = min(last, int(self._before[-1]))
        if last <= first:
            return np.empty(0)
        begin = int(np.searchsorted(self._before, first, side="right")) - 1
        end = int(np.searchsorted(self._before, last - 1, side="right"))
        times: Times = np.concatenate([self._times(slot) for slot in range(begin, end)])
        offset = int(self._before[begin])
        return times[first - offset : last - offset : step]

    def _draw_slot(self, slot: int) -> Times:
        count = int(self._before[slot + 1] - self._before[slot])
        offsets = np.sort(np.random.default_rng([self._seed, 1, slot]).random(count))
        times: Times = self._slot * slot + offsets * self._lengths[slot]
        return times


class ScheduleShare:
    """Messages member, member + members ... of a schedule: the share of one of several workers."""

    def __init__(self, whole: Schedule, member: int, members: int) -> None:
        self._whole, self._member, self._members = whole, member, members

    def count(self, elapsed: float) -> int:
        """Return how many messages of the share are due by `elapsed` seconds."""
        return max(0, (self._whole.count(elapsed) - self._member + self._members - 1) // self._members)

    def due(self, first: int, last: int, step: int = 1) -> Times:
        """Return the due times of the share's messages first, first + step ... up to but not including `last`."""
        begin, end = (self._member + self._members * number for number in (first, last))
        return self._whole.due(begin, end - self._members + 1, self._members * step)


def create_schedule(arrivals: str, rate: float, seconds: float, *, seed: int = 0, profile: Profile = ()) -> Schedule:
    """Return the schedule of that name.

    Args:
        arrivals: constant, poisson, or one that follows `profile`: bursts, steps, trace.
        rate: Mean rate in messages/s.
        seconds: Duration; nothing is due after it.
        seed: Of PoissonSchedule arrivals.
        profile: Of arrivals that follow one.

    Raises:
        ValueError: There is no schedule of that name.
    """
    if arrivals == "constant":
        return ConstantSchedule(rate, seconds)
    if arrivals == "poisson":
        return PoissonSchedule(rate, seconds, seed)
    if arrivals in ("bursts", "steps", "trace"):
        return ProfiledSchedule(rate, seconds, profile)
    raise ValueError(f"arrivals: {arrivals!r} is not a schedule; known: constant, poisson, bursts, steps, trace")
