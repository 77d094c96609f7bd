"""What may go wrong around a simulated system: deaths, refusals, counters that stall, reset or repeat, a clock that jumps."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.model.measurement import Measurement
from bench.simulation.capacity import Ticks

STALL = 30.0
JUMP = 20.0
NEVER = float("inf")


class Counters(Struct, frozen=True):
    """The counters of a trial at the end of each tick: seconds since its start, and messages."""

    at: Ticks
    offered: Ticks
    sent: Ticks
    processed: Ticks


class Faults(Struct, frozen=True):
    """What goes wrong, and when in seconds of the system's clock; `*_every` seconds again and again."""

    dies_at: float = NEVER
    dies_above: float = NEVER
    """a rate that kills it, every time, after a few seconds"""
    rejects: bool = False
    stalls_at: float = NEVER
    resets_at: float = NEVER
    resets_every: float = 0.0
    repeats_at: float = NEVER
    repeats_always: bool = False
    jumps_at: float = NEVER

    def dies_after(self, rate: float, begun: float, lasting: float) -> float | None:
        """After how many seconds a trial at that rate kills the framework, if it does."""
        if rate > self.dies_above:
            return min(5.0, lasting)
        return self.dies_at - begun if begun <= self.dies_at < begun + lasting else None

    def hidden_until(self, clock: float) -> float:
        """When the processed counter moves again that stands still at that time."""
        return self.stalls_at + STALL if self.stalls_at <= clock < self.stalls_at + STALL else clock

    def applied(self, counters: Counters, begun: float) -> Counters:
        """The counters as they are seen."""
        clock = begun + counters.at
        for fault in (self._stalled, self._reset, self._jumped):
            counters = fault(counters, clock)
        return counters

    def accounted(self, seen: Measurement, begun: float) -> Measurement:
        """The measurement with what the tallies say of refused and repeated messages."""
        if self.rejects:
            return replace(seen, failed=seen.offered, sent=0, processed=0, lost=0, late=0.0)
        if begun <= self.jumps_at < begun + seen.offered / seen.planned.rate:
            seen = replace(seen, late=min(JUMP, seen.planned.window))
        again = self.repeats_always or begun <= self.repeats_at < begun + seen.seconds
        return replace(seen, duplicated=max(1, seen.processed // 1000)) if again else seen

    def _stalled(self, counters: Counters, clock: Ticks) -> Counters:
        """For a while the processed counter does not move; then it catches up."""
        still = (clock >= self.stalls_at) & (clock < self.stalls_at + STALL)
        if not still.any():
            return counters
        processed = counters.processed.copy()
        first = int(np.flatnonzero(still)[0])
        processed[still] = processed[first - 1] if first else 0.0
        return replace(counters, processed=processed)

    def _reset(self, counters: Counters, clock: Ticks) -> Counters:
        """The processed counter begins again at zero."""
        times = [self.resets_at]
        if self.resets_every:
            times = list(np.arange(self.resets_every, clock[-1], self.resets_every))
        processed = counters.processed.copy()
        for time in times:
            after = clock >= time
            if after.any() and not after.all():
                processed[after] -= processed[after][0]
        return replace(counters, processed=np.maximum(processed, 0.0))

    def _jumped(self, counters: Counters, clock: Ticks) -> Counters:
        """The clock jumps ahead, and what is due with it; the load sends on as before and is late from then on."""
        after = clock >= self.jumps_at
        if not after.any() or after.all():
            return counters
        at, total = counters.at + JUMP * after, counters.offered.max()
        rate = counters.offered[-1] / counters.at[-1]
        return replace(counters, at=at, offered=np.minimum(np.floor(rate * at + 0.5), total))
