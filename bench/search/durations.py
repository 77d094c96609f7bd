"""How long the parts of a trial last: long enough for the batch interval, the rate and the precision that is asked for."""

from msgspec import Struct

from bench.config.scenario import Timing
from bench.model.measurement import PlannedTrial, Purpose

MAX_WINDOW, MAX_WARM_UP = 300.0, 60.0


class Pace(Struct, frozen=True):
    """Plans trials; `precision` is the relative width to which rates are told apart, `batch_interval` in seconds."""

    timing: Timing
    precision: float
    batch_interval: float

    def planned(self, number: int, rate: float, purpose: Purpose) -> PlannedTrial:
        """A trial at that rate."""
        settle = max(1.0, 2 * self.batch_interval) if self.timing.settle is None else float(self.timing.settle)
        window = self._window(rate)
        if purpose == "warm-up":  # it only steers
            window = max(min(window / 2, MAX_WARM_UP), 2 * self.batch_interval)
        return PlannedTrial(number, float(rate), settle, window, purpose)

    def _window(self, rate: float) -> float:
        """At least a few batches, and so many messages that a drift of half the precision is several messages."""
        batches = 4 * self.batch_interval
        if self.timing.window is None:
            usual = max(10.0, 5 * self.batch_interval, 0.75 * self.batch_interval / self.precision)
        else:
            usual = float(self.timing.window)
        return max(usual, batches, min(MAX_WINDOW, 15 / (self.precision * rate)))

    def longest(self, rate: float) -> float:
        """About how long a trial at that rate takes, drain included."""
        planned = self.planned(0, rate, "search")
        return planned.settle + planned.window + 1.0 + self.batch_interval
