"""Durations of trials, in seconds, as functions of batch interval, rate, precision and budget."""

from msgspec import Struct

from bench.config.scenario import Timing
from bench.model.measurement import PlannedTrial, Purpose
from bench.search.parameters import SearchParameters
from bench.search.problem import SearchProblem

MAX_WINDOW_S, MAX_WARM_UP_S = 300.0, 60.0


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
        """Return a window of at least four batches, in which a drift of half the precision is several messages."""
        batches = 4 * self.batch_interval
        if self.timing.window is None:
            usual = max(10.0, 5 * self.batch_interval, 0.75 * self.batch_interval / self.precision)
        else:
            usual = float(self.timing.window)
        return max(usual, batches, min(MAX_WINDOW_S, 15 / (self.precision * rate)))


class TwoCounterDurations(Struct, frozen=True):
    """Durations of the two-counter search's trials for one cell; the plans have number 0."""

    problem: SearchProblem
    parameters: SearchParameters

    def plan_probe(self, rate: float, times: float = 1.0) -> PlannedTrial:
        """Return a short trial of `times` probe lengths, for bracketing and its check."""
        parameters, interval = self.parameters, self._interval
        usual = min(times * max(parameters.probe, parameters.probe_batches * interval), self._trial)
        return self._plan(rate, max(usual, min(parameters.probe_messages / rate, self._longest)), "search")

    def plan_trial(self, rate: float, purpose: Purpose = "search") -> PlannedTrial:
        """Return a trial of full length, which is longer for slow cells, so that enough messages are processed."""
        return self._plan(rate, max(self._trial, min(self.parameters.trial_messages / rate, self._longest)), purpose)

    def plan_warm_up(self, rate: float) -> PlannedTrial:
        """Return a warm-up: load on a cold system."""
        parameters, interval = self.parameters, self._interval
        usual = max(parameters.warm_up, parameters.warm_up_batches * interval)
        shortest = max(self._settle, 2 * interval)
        return self._plan(rate, max(shortest, min(usual, self._trial / 2)), "warm-up")

    def max_seconds(self, planned: PlannedTrial) -> float:
        """Return the duration of a trial that does not drain and needs a restart.

        Drain and restart together count at most 10 % of the budget.
        """
        drain = float(self.problem.timing.drain) + 2 * self._interval
        after = min(drain + self.parameters.restart, 0.1 * float(self.problem.search.budget))
        return planned.settle + planned.window + after

    @property
    def _interval(self) -> float:
        return self.problem.batch_interval

    @property
    def _settle(self) -> float:
        configured, parameters = self.problem.timing.settle, self.parameters
        if configured is not None:
            return float(configured)
        return max(parameters.settle, parameters.settle_batches * self._interval)

    @property
    def _trial(self) -> float:
        configured = self.problem.timing.window
        if configured is not None:
            return max(float(configured), 4 * self._interval)
        usual = max(self.parameters.trial, self.parameters.trial_batches * self._interval)
        return max(5 * self._interval, min(usual, self._longest))

    @property
    def _longest(self) -> float:
        return float(self.problem.search.budget) / self.parameters.trials_in_budget

    def _plan(self, rate: float, window: float, purpose: Purpose) -> PlannedTrial:
        return PlannedTrial(0, float(rate), self._settle, float(window), purpose)
