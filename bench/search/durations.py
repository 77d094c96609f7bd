"""Durations of trials, in seconds, as functions of batch interval, rate, precision and budget."""

from msgspec import Struct

from bench.config.scenario import Timing
from bench.model.measurement import PlannedTrial, Purpose

MAX_WINDOW_S, MAX_WARM_UP_S = 300.0, 60.0
BATCHES_IN_WINDOW = 6.2
"""Shortest window in batch intervals: six batches are completed within it."""


class TrialDurations(Struct, frozen=True):
    """Durations of the bisection's trials, which `bench plan` also takes as typical ones.

    `precision` is the relative width to which rates are told apart, `batch_interval` is in seconds.
    """

    timing: Timing
    precision: float
    batch_interval: float

    def plan(self, number: int, rate: float, purpose: Purpose) -> PlannedTrial:
        """Return a trial at `rate` messages/s with its settling time and window."""
        settle = max(1.0, 2 * self.batch_interval) if self.timing.settle is None else float(self.timing.settle)
        window = self._window(rate)
        if purpose == "warm-up":  # its measurement only selects the next rate
            window = max(min(window / 2, MAX_WARM_UP_S), 2 * self.batch_interval)
        return PlannedTrial(number, float(rate), settle, window, purpose)

    def estimate_seconds(self, rate: float) -> float:
        """Return about how long a trial at `rate` messages/s takes, including its drain."""
        planned = self.plan(0, rate, "search")
        return planned.settle + planned.window + 1.0 + self.batch_interval

    def _window(self, rate: float) -> float:
        """Return a window of at least six batches, in which a drift of half the precision is several messages."""
        batches = BATCHES_IN_WINDOW * self.batch_interval
        if self.timing.window is None:
            usual = max(10.0, 5 * self.batch_interval, 0.75 * self.batch_interval / self.precision)
        else:
            usual = float(self.timing.window)
        return max(usual, batches, min(MAX_WINDOW_S, 15 / (self.precision * rate)))
