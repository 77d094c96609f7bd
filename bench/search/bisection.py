"""Bracketing and bisection of ln(rate); the result is confirmed by a second trial.

An overloaded trial also gives an estimate of the capacity, rate x (1 - loss): the next trials are made at 0.45 of the
precision below and above it. Without an estimate, the rate grows sevenfold, or is the geometric mean of the bracket.
The first trial of a cell runs on a cold system: an overload then only selects the next rate and bounds nothing. The
interval is the bracket, not a confidence interval.
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.bounds import infer_limit
from bench.analysis.verdict import GENERATOR_LATE, Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.bracketing import Bracket
from bench.search.durations import TrialDurations
from bench.search.problem import SearchPlugin, SearchProblem, Step
from bench.search.trial_summary import last_note, result_without_rate, with_trial, without_valid_trial

GROWTH, CAREFUL_GROWTH = 7, 1.6
"""Factors from one sustained rate to the next: while no trial was overloaded, and after one was."""
MAX_DEATHS = 2
MAX_INVALID = 5
MAX_CONTRADICTIONS = 3


class Bisection(Struct, frozen=True):
    """The search as a value: everything follows from the problem and the steps."""

    problem: SearchProblem
    steps: tuple[Step, ...] = ()

    def after(self, measurement: Measurement, verdict: Verdict) -> "Bisection":
        """Return the search with one more judged trial."""
        return replace(self, steps=(*self.steps, Step(replace(measurement, series=Series()), verdict)))

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial that the budget allows; None when the search is finished."""
        search, number = self.problem.search, len(self.steps)
        durations = TrialDurations(self.problem.timing, float(search.precision), self.problem.batch_interval)
        if not self.steps:
            return durations.plan(0, self.problem.start, "warm-up")
        bracket = self._bracket()
        if self._has_failed(bracket) or self._answers(bracket):
            return None
        if bracket.late_at is None and self._is_precise(bracket) and bracket.low is not None:
            return durations.plan(number, bracket.low, "confirm")
        rate = bracket.late_at or self._next_rate(bracket)
        if self._spent_seconds() + durations.estimate_seconds(rate) > search.budget:
            return None
        return durations.plan(number, rate, "search")

    def result(self) -> Result:
        """Return the result so far: estimate, bracket, confirmed rate, status and reason."""
        bracket = self._bracket()
        best = bracket.confirmed or self._best_step(bracket)
        result = result_without_rate(self.problem, self.steps, self._generator_hz())
        result = self._with_status(result, bracket)
        if result.status in ("failed", "not-measured") or best is None:
            return result
        return with_trial(result, best, self._limit(result, bracket))

    def _bracket(self) -> Bracket:
        bracket = Bracket()
        for step in self.steps:
            bracket = bracket.add(step, float(self.problem.search.precision))
        return bracket

    def _spent_seconds(self) -> float:
        return sum(step.measurement.seconds for step in self.steps)

    def _has_failed(self, bracket: Bracket) -> bool:
        """Return True if the search ends without a measured rate."""
        if (
            bracket.deaths >= MAX_DEATHS
            or bracket.invalid >= MAX_INVALID
            or bracket.contradictions > MAX_CONTRADICTIONS
        ):
            return True
        return bracket.upper is not None and bracket.upper <= self.problem.search.lowest

    def _is_precise(self, bracket: Bracket) -> bool:
        """Return True if the bracket is as narrow as requested, or its lower end is the highest rate worth a trial."""
        if bracket.low is None:
            return False
        if bracket.upper is None:
            return bracket.low >= self.problem.highest
        return bracket.upper / bracket.low <= 1 + self.problem.search.precision + 1e-9

    def _answers(self, bracket: Bracket) -> bool:
        """Return True if the bracket above the confirmed rate is as narrow as requested."""
        if bracket.confirmed is None:
            return False
        rate = bracket.confirmed.measurement.planned.rate
        upper = bracket.upper or self.problem.highest
        return upper / rate <= 1 + self.problem.search.precision + 1e-9 and self._is_precise(bracket)

    def _next_rate(self, bracket: Bracket) -> float:
        lowest, highest = float(self.problem.search.lowest), self.problem.highest
        low, upper = bracket.low, bracket.upper
        below, above = self._around(bracket.estimate)
        if upper is None:
            if low is None:
                return min(highest, self.problem.start if below is None else max(lowest, below))
            if above is None or above <= low * 1.01:
                above = _raise(low, bracket.lowest_overloaded)
            return min(highest, above)
        if low is None:
            return max(lowest, below if below is not None and below < 0.99 * upper else upper / 1.5)
        width = 1 + float(self.problem.search.precision)
        margin = width**0.25
        if below is not None and low * margin < below < upper / margin:
            return below
        higher = max(above or 0.0, float(low * width**0.95))
        if above is not None and higher < upper / margin:
            return higher
        return float((low * upper) ** 0.5)

    def _around(self, estimate: float | None) -> tuple[float, float] | tuple[None, None]:
        """Return a rate below and one above the estimate, 0.9 of the precision apart."""
        if estimate is None:
            return None, None
        half = (1 + self.problem.search.precision) ** 0.45
        return estimate / half, estimate * half

    def _steps_at(self, word: str, rate: float | None) -> list[Step]:
        return [step for step in self.steps if step.verdict.word == word and step.measurement.planned.rate == rate]

    def _best_step(self, bracket: Bracket) -> Step | None:
        sustained = self._steps_at("sustained", bracket.low)
        return sustained[-1] if sustained else None

    def _generator_hz(self) -> float | None:
        """Return the highest rate that the generator sent in a trial in which it was the limit."""
        late = [step.measurement for step in self.steps if step.verdict.why == GENERATOR_LATE]
        rates = [each.planned.rate * (1 - each.late / (each.planned.settle + each.planned.window)) for each in late]
        return max(rates, default=None)

    def _with_status(self, result: Result, bracket: Bracket) -> Result:
        low, high, limit = bracket.low, bracket.high, bracket.generator_limit
        if bracket.deaths >= MAX_DEATHS:
            ended = self.steps[-1].measurement.ended
            return replace(result, reason=f"{ended} {bracket.deaths} times: {last_note(self.steps)}", low_hz=low)
        if bracket.invalid >= MAX_INVALID:
            return without_valid_trial(result, self.steps[-1].verdict)
        if bracket.contradictions > MAX_CONTRADICTIONS:
            return replace(result, status="unstable", reason="trials disagree", low_hz=low, high_hz=high)
        if low is None:
            return self._without_low(result, bracket)
        confirmed = bracket.confirmed.measurement.planned.rate if bracket.confirmed is not None else None
        result = replace(result, low_hz=low, high_hz=high, confirmed_hz=confirmed)
        if high is not None and confirmed is not None and self._answers(bracket) and (limit is None or high <= limit):
            return replace(result, status="measured", low_hz=confirmed, estimate_hz=(confirmed * high) ** 0.5)
        reason = "generator" if limit is not None and (high is None or limit < high) else "budget"
        if high is None and limit is None and low >= self.problem.search.highest:
            reason = "highest"
        return replace(result, status="lower-bound", reason=reason, estimate_hz=low)

    def _without_low(self, result: Result, bracket: Bracket) -> Result:
        """Return the result of a search without a sustained trial."""
        if bracket.high is not None:
            lowest = bracket.high <= self.problem.search.lowest
            why = f"overloaded at {bracket.high:g} /s, the lowest rate tried: {self._why_overloaded(bracket.high)}"
            return replace(result, status="upper-bound", reason=why if not lowest else "floor", high_hz=bracket.high)
        if bracket.generator_limit is not None:
            return replace(result, reason=f"the generator did not reach even {bracket.generator_limit:g} /s")
        return replace(result, reason="no trial within the budget")

    def _why_overloaded(self, rate: float | None) -> str:
        overloaded = self._steps_at("overloaded", rate)
        return overloaded[-1].verdict.why if overloaded else ""

    def _limit(self, result: Result, bracket: Bracket) -> str | None:
        """Return the resource that limited the trial at the upper end of the bracket."""
        if result.reason == "generator":
            return "generator"
        overloaded = self._steps_at("overloaded", bracket.high)
        return infer_limit(self._why_overloaded(bracket.high), overloaded[-1].measurement.cpu if overloaded else {})


def _raise(low: float, lowest_overloaded: float | None) -> float:
    """Return a rate above `low` without a bound or an estimate."""
    if lowest_overloaded is None:
        return GROWTH * low
    careful = CAREFUL_GROWTH * low
    return float((low * lowest_overloaded) ** 0.5) if careful < lowest_overloaded else careful


plugin = SearchPlugin(make=Bisection)
