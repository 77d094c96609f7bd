"""Faults of a simulated system: deaths, rejected messages, counters that stall, reset or repeat, a clock that jumps."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.model.measurement import Measurement
from bench.simulation.capacity import Ticks

STALL_S = 30.0
JUMP_S = 20.0
NEVER = float("inf")


class Counters(Struct, frozen=True):
    """The counters of a trial at the end of each tick: seconds since its start, and messages."""

    at: Ticks
    offered: Ticks
    sent: Ticks
    processed: Ticks


class Faults(Struct, frozen=True):
    """The faults of a system; `*_at` in seconds of its clock, `*_every` in seconds between faults."""

    dies_at: float = NEVER
    dies_above: float = NEVER
    """a rate in messages/s above which it always dies, after 5 seconds"""
    rejects: bool = False
    stalls_at: float = NEVER
    resets_at: float = NEVER
    resets_every: float = 0.0
    repeats_at: float = NEVER
    repeats_always: bool = False
    jumps_at: float = NEVER

    def seconds_until_death(self, rate: float, begin: float, duration: float) -> float | None:
        """Return the seconds after which a trial at `rate`, begun at `begin`, kills the framework, or None."""
        if rate > self.dies_above:
            return min(5.0, duration)
        return self.dies_at - begin if begin <= self.dies_at < begin + duration else None

    def next_visible(self, clock: float) -> float:
        """Return the time from `clock` on at which the processed counter moves: later only during a stall."""
        return self.stalls_at + STALL_S if self.stalls_at <= clock < self.stalls_at + STALL_S else clock

    def distort_counters(self, counters: Counters, begin: float) -> Counters:
        """Return the counters of a trial, begun at `begin`, as the harness reads them."""
        clock = begin + counters.at
        for distort in (self._stall, self._reset, self._jump):
            counters = distort(counters, clock)
        return counters

    def distort_totals(self, measurement: Measurement, begin: float) -> Measurement:
        """Return the measurement with rejected and repeated messages, and late after a jump of the clock."""
        if self.rejects:
            return replace(measurement, failed=measurement.offered, sent=0, processed=0, lost=0, late=0.0)
        if begin <= self.jumps_at < begin + measurement.offered / measurement.planned.rate:
            measurement = replace(measurement, late=min(JUMP_S, measurement.planned.window))
        repeats = self.repeats_always or begin <= self.repeats_at < begin + measurement.seconds
        return replace(measurement, duplicated=max(1, measurement.processed // 1000)) if repeats else measurement

    def _stall(self, counters: Counters, clock: Ticks) -> Counters:
        """Return counters whose processed counter stands still for a while, and then catches up."""
        still = (clock >= self.stalls_at) & (clock < self.stalls_at + STALL_S)
        if not still.any():
            return counters
        processed = counters.processed.copy()
        first = int(np.flatnonzero(still)[0])
        processed[still] = processed[first - 1] if first else 0.0
        return replace(counters, processed=processed)

    def _reset(self, counters: Counters, clock: Ticks) -> Counters:
        """Return counters whose processed counter restarts at zero."""
        times = [self.resets_at]
        if self.resets_every:
            times = list(np.arange(self.resets_every, clock[-1], self.resets_every))
        processed = counters.processed.copy()
        for time in times:
            after = clock >= time
            if after.any() and not after.all():
                processed[after] -= processed[after][0]
        return replace(counters, processed=np.maximum(processed, 0.0))

    def _jump(self, counters: Counters, clock: Ticks) -> Counters:
        """Return counters whose clock and due messages jump ahead; the load is late from then on."""
        after = clock >= self.jumps_at
        if not after.any() or after.all():
            return counters
        at, total = counters.at + JUMP_S * after, counters.offered.max()
        rate = counters.offered[-1] / counters.at[-1]
        return replace(counters, at=at, offered=np.minimum(np.floor(rate * at + 0.5), total))
