"""MLRsearch as FD.io's auditors know it: the package of that name plans the trials, told of one goal: at most 1 % lost in 60 s.

Its interval is where it stopped, not a confidence interval (see `bench certify`). The package drives its measurer; here it is told
the trials that were made, and stops where it asks for one that was not. Source: IETF draft-ietf-bmwg-mlrsearch.
"""

from collections.abc import Iterator

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.stability import drift_of
from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.problem import SearchProblem, Step
from bench.search.trial_summary import bare_result, note_of, with_account

LOSS, EXCEED, TRIAL, SUM = 0.01, 0.5, 5.0, 60.0
NEVER = 1e9
MAX_INVALID = 3
SETTLE = 1.0


class _WantedError(Exception):
    """The package asks for a trial that was not made yet."""

    def __init__(self, seconds: float, rate: float) -> None:
        super().__init__(seconds, rate)
        self.seconds, self.rate = seconds, rate


class MlrSearch(Struct, frozen=True):
    """A search as a value; `losses` are those of the valid steps, in order."""

    question: SearchProblem
    steps: tuple[Step, ...] = ()
    losses: tuple[float, ...] = ()

    def after(self, seen: Measurement, verdict: Verdict) -> "MlrSearch":
        step = Step(replace(seen, series=Series()), verdict)
        if verdict.word == "invalid" and verdict.why != "generator":
            return replace(self, steps=(*self.steps, step))
        overloaded = verdict.word != "sustained"
        loss = max(drift_of(seen).loss, verdict.loss, 2 * LOSS if overloaded else 0.0) if overloaded else 0.0
        return replace(self, steps=(*self.steps, step), losses=(*self.losses, min(0.99, loss)))

    def next_trial(self) -> PlannedTrial | None:
        if self._gone:
            return None
        try:
            self._bounds()
        except _WantedError as wanted:
            interval = self.question.batch_interval
            settle, window = max(SETTLE, 2 * interval), max(wanted.seconds, 6 * interval)
            drain = float(self.question.timing.drain) + 2 * interval
            if sum(step.seen.seconds for step in self.steps) + settle + window + drain > self.question.search.budget:
                return None
            return PlannedTrial(len(self.steps), wanted.rate, settle, window, "search")
        return None

    def result(self) -> Result:
        late = [step.seen.planned.rate for step in self.steps if step.verdict.why == "generator"]
        bare = bare_result(self.question, self.steps, max(late, default=None))
        if self._gone:
            return replace(bare, reason=f"gave up: {note_of(self.steps)}")
        try:
            low, high = self._bounds()
        except _WantedError:
            return self._unfinished(bare)
        if low is None:
            return replace(bare, status="upper-bound", reason="floor", high_hz=high)
        best = min(self._sustained(), key=lambda step: abs(step.seen.planned.rate - low), default=None)
        found = replace(bare, status="measured", estimate_hz=low, low_hz=low, high_hz=high, confirmed_hz=low)
        if high is None or any(rate <= 1.001 * high for rate in late):
            reason = "generator" if late or self.question.generator_hz is not None else "budget"
            found = replace(found, status="lower-bound", reason=reason, high_hz=None)
        return (
            with_account(found, best, "generator" if found.reason == "generator" else None)
            if best is not None
            else found
        )

    def _unfinished(self, bare: Result) -> Result:
        failed = [step.seen.planned.rate for step in self.steps if step.verdict.word != "sustained"]
        below = [step for step in self._sustained() if step.seen.planned.rate < min(failed, default=float("inf"))]
        if not below:
            return replace(bare, reason="no answer within the budget")
        best = max(below, key=lambda step: step.seen.planned.rate)
        rate = best.seen.planned.rate
        return with_account(
            replace(bare, status="lower-bound", reason="budget", estimate_hz=rate, low_hz=rate), best, None
        )

    def _sustained(self) -> Iterator[Step]:
        return (step for step in self.steps if step.verdict.word == "sustained")

    @property
    def _gone(self) -> bool:
        deaths = sum(step.seen.ended == "framework died" for step in self.steps)
        return deaths >= 2 or len(self.steps) - len(self.losses) >= MAX_INVALID

    def _bounds(self) -> tuple[float | None, float | None]:
        """What the package says of the trials so far; raises _WantedError where it needs another."""
        lowest, top = float(self.question.search.lowest), self.question.highest
        if self.question.generator_hz is not None:
            top = min(top, 0.95 * self.question.generator_hz)
        goal = SearchGoal(
            loss_ratio=LOSS, exceed_ratio=EXCEED, relative_width=min(0.5, float(self.question.search.precision)),
            initial_trial_duration=TRIAL, final_trial_duration=TRIAL, duration_sum=SUM, preceding_targets=2,
            expansion_coefficient=2, fail_fast=False,
        )  # fmt: skip
        config = Config()
        config.goals, config.min_load, config.max_load = [goal], lowest, max(top, 1.01 * lowest)
        config.search_duration_max, config.warmup_duration = NEVER, None
        (found,) = MultipleLossRatioSearch(config).search(_Told(self.losses), debug=_silent).values()
        bounds = [getattr(found, name, None) for name in ("relevant_lower_bound", "relevant_upper_bound")]
        low, high = (None if bound is None else float(bound) for bound in bounds)
        return low, high


class _Told(AbstractMeasurer):  # type: ignore[misc]  # the package has no types
    """Answers with the losses that were seen, in the order in which the trials were asked for."""

    def __init__(self, losses: tuple[float, ...]) -> None:
        self._left = iter(losses)

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        loss = next(self._left, None)
        if loss is None:
            raise _WantedError(intended_duration, intended_load)
        count = max(1000, int(intended_duration * intended_load))
        return MeasurementResult(intended_duration, intended_load, offered_count=count, loss_count=round(loss * count))


def _silent(_: object) -> None: ...
