"""The throughput search of RFC 2544 (Bradner and McQuaid 1999, section 26.1): bisection with trials of 60 s.

Its interval is where the bisection stopped, not a confidence interval: one unlucky trial decides (see `bench certify`).
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import GENERATOR_LATE, Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.fixed_trials import gives_up, highest_rate, plan_trial
from bench.search.problem import SearchPlugin, SearchProblem, Step
from bench.search.trial_summary import last_note, result_without_rate, with_trial

TRIAL_S, TRIAL_BATCHES = 60.0, 15.0
"""Seconds and batch intervals of a trial's window, whichever are longer."""


class Rfc2544(Struct, frozen=True):
    """Bisection of ln(rate) until the bracket is as narrow as the precision."""

    problem: SearchProblem
    steps: tuple[Step, ...] = ()

    def after(self, measurement: Measurement, verdict: Verdict) -> "Rfc2544":
        """Return the search with one more judged trial."""
        return replace(self, steps=(*self.steps, Step(replace(measurement, series=Series()), verdict)))

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial that the budget allows; None when the search is finished."""
        low, high, lowest = self._low, self._high, float(self.problem.search.lowest)
        highest = highest_rate(self.problem)
        width = 1 + self.problem.search.precision
        if gives_up(self.steps) or low >= highest or high <= lowest or high / max(low, lowest) <= width:
            return None
        rate = (max(low, lowest) * min(high, highest)) ** 0.5
        if low == 0.0 and rate < lowest * width:
            rate = lowest
        if high == float("inf") and rate > highest / width:
            rate = highest
        return plan_trial(self.problem, self.steps, rate, max(TRIAL_S, TRIAL_BATCHES * self.problem.batch_interval))

    def result(self) -> Result:
        """Return the result so far: the bracket, its status and reason."""
        low, high = self._low, self._high
        late = [step.measurement.planned.rate for step in self.steps if step.verdict.why == GENERATOR_LATE]
        result = result_without_rate(self.problem, self.steps, max(late, default=None))
        if gives_up(self.steps):
            reason = "no valid trial: generator" if late else f"gave up: {last_note(self.steps)}"
            return replace(result, reason=reason)
        if low == 0.0:
            if high == float("inf"):
                return replace(result, reason="no trial")
            return replace(result, status="upper-bound", reason="floor", high_hz=high)
        bounded = high if high < float("inf") else None
        result = replace(result, low_hz=low, high_hz=bounded, estimate_hz=low, confirmed_hz=low)
        best = next(
            step for step in reversed(self.steps) if _is_sustained(step) and step.measurement.planned.rate == low
        )
        highest = highest_rate(self.problem)
        at_limit = low >= 0.999 * highest and highest < self.problem.highest
        if at_limit or any(rate <= 1.001 * high for rate in late):
            result = replace(result, status="lower-bound", reason="generator", high_hz=None)
            return with_trial(result, best, "generator")
        if high / low > 1 + self.problem.search.precision:
            return with_trial(replace(result, status="lower-bound", reason="budget"), best, None)
        return with_trial(replace(result, status="measured", estimate_hz=(low * high) ** 0.5), best, None)

    @property
    def _low(self) -> float:
        """The highest sustained rate below every failed one; 0 for none."""
        rates = [step.measurement.planned.rate for step in self.steps if _is_sustained(step)]
        return max((rate for rate in rates if rate < self._high), default=0.0)

    @property
    def _high(self) -> float:
        """The lowest failed rate: overloaded, or not reached by the generator."""
        return min((step.measurement.planned.rate for step in self.steps if _is_failed(step)), default=float("inf"))


def _is_sustained(step: Step) -> bool:
    return step.verdict.word == "sustained"


def _is_failed(step: Step) -> bool:
    return step.verdict.word == "overloaded" or step.verdict.why == GENERATOR_LATE


plugin = SearchPlugin(make=Rfc2544)
