"""The throughput search of RFC 2544 (Bradner and McQuaid 1999, section 26.1): bisection with trials of 60 s.

Its interval is where the bisection stopped, not a confidence interval: one unlucky trial decides (see `bench certify`).
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.problem import SearchProblem, Step
from bench.search.trial_summary import last_note, result_without_rate, with_trial

TRIAL_S, SETTLE_S = 60.0, 1.0
MAX_INVALID, MAX_DEATHS = 3, 2
GENERATOR_SHARE = 0.95
"""Highest planned rate, as a share of the generator's ceiling."""


class Rfc2544(Struct, frozen=True):
    """Bisection of ln(rate) until the bracket is as narrow as the precision."""

    problem: SearchProblem
    steps: tuple[Step, ...] = ()

    def after(self, measurement: Measurement, verdict: Verdict) -> "Rfc2544":
        """Return the search with one more judged trial."""
        return replace(self, steps=(*self.steps, Step(replace(measurement, series=Series()), verdict)))

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial that the budget allows; None when the search is finished."""
        low, high, lowest, highest = self._low, self._high, float(self.problem.search.lowest), self._highest
        width = 1 + self.problem.search.precision
        if self._failed or low >= highest or high <= lowest or high / max(low, lowest) <= width:
            return None
        rate = (max(low, lowest) * min(high, highest)) ** 0.5
        if low == 0.0 and rate < lowest * width:
            rate = lowest
        if high == float("inf") and rate > highest / width:
            rate = highest
        interval = self.problem.batch_interval
        settle, window = max(SETTLE_S, 2 * interval), max(TRIAL_S, 15 * interval)
        drain = float(self.problem.timing.drain) + 2 * interval
        spent = sum(step.measurement.seconds for step in self.steps)
        if spent + settle + window + drain > self.problem.search.budget:
            return None
        return PlannedTrial(len(self.steps), float(rate), settle, window, "search")

    def result(self) -> Result:
        """Return the result so far: the bracket, its status and reason."""
        low, high = self._low, self._high
        late = [step.measurement.planned.rate for step in self.steps if step.verdict.why == "generator"]
        result = result_without_rate(self.problem, self.steps, max(late, default=None))
        if self._failed:
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
        at_limit = low >= 0.999 * self._highest and self._highest < self.problem.highest
        if at_limit or any(rate <= 1.001 * high for rate in late):
            result = replace(result, status="lower-bound", reason="generator", high_hz=None)
            return with_trial(result, best, "generator")
        if high / low > 1 + self.problem.search.precision:
            return with_trial(replace(result, status="lower-bound", reason="budget"), best, None)
        return with_trial(replace(result, status="measured", estimate_hz=(low * high) ** 0.5), best, None)

    @property
    def _highest(self) -> float:
        """The highest planned rate: that of the problem, or what the generator can offer."""
        generator = self.problem.generator_hz
        offered = GENERATOR_SHARE * generator if generator is not None else float("inf")
        return min(self.problem.highest, max(offered, float(self.problem.search.lowest)))

    @property
    def _low(self) -> float:
        """The highest sustained rate below every failed one; 0 for none."""
        rates = [step.measurement.planned.rate for step in self.steps if _is_sustained(step)]
        return max((rate for rate in rates if rate < self._high), default=0.0)

    @property
    def _high(self) -> float:
        """The lowest failed rate: overloaded, or not reached by the generator."""
        return min((step.measurement.planned.rate for step in self.steps if _is_failed(step)), default=float("inf"))

    @property
    def _failed(self) -> bool:
        deaths = sum(step.measurement.ended == "framework died" for step in self.steps)
        invalid = sum(step.verdict.word == "invalid" and step.verdict.why != "generator" for step in self.steps)
        return deaths >= MAX_DEATHS or invalid >= MAX_INVALID


def _is_sustained(step: Step) -> bool:
    return step.verdict.word == "sustained"


def _is_failed(step: Step) -> bool:
    return step.verdict.word == "overloaded" or step.verdict.why == "generator"
