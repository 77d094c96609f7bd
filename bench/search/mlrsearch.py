"""MLRsearch: trials planned by the package of that name (FD.io CSIT), with one goal of at most 1 % loss over 60 s.

Source: IETF draft-ietf-bmwg-mlrsearch. Its interval is where the search stopped, not a confidence interval (see
`bench certify`). The package calls its measurer itself; here every plan replays the finished trials to it and stops
where it requests a new one.
"""

from collections.abc import Iterator

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.stability import assess_stability
from bench.analysis.verdict import GENERATOR_LATE, Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.fixed_trials import gives_up, highest_rate, plan_trial
from bench.search.problem import SearchPlugin, SearchProblem, Step
from bench.search.trial_summary import last_note, result_without_rate, with_trial

LOSS_RATIO, EXCEED_RATIO, TRIAL_S, DURATION_SUM_S = 0.01, 0.5, 5.0, 60.0
UNLIMITED_S = 1e9
TRIAL_BATCHES = 6.0
"""Shortest window in batch intervals."""


class _TrialRequestedError(Exception):
    """A request of the package for a new trial."""

    def __init__(self, seconds: float, rate: float) -> None:
        super().__init__(seconds, rate)
        self.seconds, self.rate = seconds, rate


class MlrSearch(Struct, frozen=True):
    """The search as a value; `losses` are the loss ratios of the valid steps, in their order."""

    problem: SearchProblem
    steps: tuple[Step, ...] = ()
    losses: tuple[float, ...] = ()

    def after(self, measurement: Measurement, verdict: Verdict) -> "MlrSearch":
        """Return the search with one more judged trial; an invalid one is not passed to the package."""
        step = Step(replace(measurement, series=Series()), verdict)
        if verdict.word == "invalid" and verdict.why != GENERATOR_LATE:
            return replace(self, steps=(*self.steps, step))
        loss = 0.0
        if verdict.word != "sustained":
            loss = max(assess_stability(measurement).loss, verdict.loss, 2 * LOSS_RATIO)
        return replace(self, steps=(*self.steps, step), losses=(*self.losses, min(0.99, loss)))

    def next_trial(self) -> PlannedTrial | None:
        """Return the trial that the package requests, if the budget allows it; None when the search is finished."""
        if gives_up(self.steps):
            return None
        try:
            self._replay()
        except _TrialRequestedError as request:
            window = max(request.seconds, TRIAL_BATCHES * self.problem.batch_interval)
            return plan_trial(self.problem, self.steps, request.rate, window)
        return None

    def result(self) -> Result:
        """Return the result so far: the relevant bounds of the package, their status and reason."""
        late = [step.measurement.planned.rate for step in self.steps if step.verdict.why == GENERATOR_LATE]
        result = result_without_rate(self.problem, self.steps, max(late, default=None))
        if gives_up(self.steps):
            return replace(result, reason=f"gave up: {last_note(self.steps)}")
        try:
            low, high = self._replay()
        except _TrialRequestedError:
            return self._finish_early(result)
        if low is None:
            return replace(result, status="upper-bound", reason="floor", high_hz=high)
        best = min(self._list_sustained(), key=lambda step: abs(step.measurement.planned.rate - low), default=None)
        result = replace(result, status="measured", estimate_hz=low, low_hz=low, high_hz=high, confirmed_hz=low)
        if high is None or any(rate <= 1.001 * high for rate in late):
            reason = "generator" if late or self.problem.generator_hz is not None else "budget"
            result = replace(result, status="lower-bound", reason=reason, high_hz=None)
        limit = "generator" if result.reason == "generator" else None
        return with_trial(result, best, limit) if best is not None else result

    def _finish_early(self, result: Result) -> Result:
        """Return the result of a search that the budget ended: the highest rate sustained below every failed one."""
        failed = [step.measurement.planned.rate for step in self.steps if step.verdict.word != "sustained"]
        lowest_failed = min(failed, default=float("inf"))
        below = [step for step in self._list_sustained() if step.measurement.planned.rate < lowest_failed]
        if not below:
            return replace(result, reason="no answer within the budget")
        best = max(below, key=lambda step: step.measurement.planned.rate)
        rate = best.measurement.planned.rate
        return with_trial(
            replace(result, status="lower-bound", reason="budget", estimate_hz=rate, low_hz=rate), best, None
        )

    def _list_sustained(self) -> Iterator[Step]:
        return (step for step in self.steps if step.verdict.word == "sustained")

    def _replay(self) -> tuple[float | None, float | None]:
        """Return the lower and the upper bound that the package reports after the finished trials, in messages/s.

        Raises:
            _TrialRequestedError: The package requests a further trial.
        """
        lowest, highest = float(self.problem.search.lowest), highest_rate(self.problem)
        goal = SearchGoal(
            loss_ratio=LOSS_RATIO, exceed_ratio=EXCEED_RATIO,
            relative_width=min(0.5, float(self.problem.search.precision)),
            initial_trial_duration=TRIAL_S, final_trial_duration=TRIAL_S, duration_sum=DURATION_SUM_S,
            preceding_targets=2, expansion_coefficient=2, fail_fast=False,
        )  # fmt: skip
        config = Config()
        config.goals, config.min_load, config.max_load = [goal], lowest, max(highest, 1.01 * lowest)
        config.search_duration_max, config.warmup_duration = UNLIMITED_S, None
        measurer = _RecordedMeasurer(self.losses)
        (goal_result,) = MultipleLossRatioSearch(config).search(measurer, debug=_ignore).values()
        bounds = [getattr(goal_result, name, None) for name in ("relevant_lower_bound", "relevant_upper_bound")]
        low, high = (None if bound is None else float(bound) for bound in bounds)
        return low, high


class _RecordedMeasurer(AbstractMeasurer):  # type: ignore[misc]  # the package has no types
    """A measurer that returns recorded losses, in the order in which the trials are requested."""

    def __init__(self, losses: tuple[float, ...]) -> None:
        self._left = iter(losses)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Return the next recorded trial; raise _TrialRequestedError after the last one."""
        loss = next(self._left, None)
        if loss is None:
            raise _TrialRequestedError(intended_duration, intended_load)
        count = max(1000, int(intended_duration * intended_load))
        return MeasurementResult(intended_duration, intended_load, offered_count=count, loss_count=round(loss * count))


def _ignore(_: object) -> None: ...


plugin = SearchPlugin(make=MlrSearch)
