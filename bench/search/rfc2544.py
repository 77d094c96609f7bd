"""The throughput search of RFC 2544 (Bradner and McQuaid, 1999, section 26.1): bisection by trials of 60 s, no repeats.

The interval is where the bisection stopped, not a confidence interval: one unlucky trial decides (see `bench certify`).
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.problem import SearchProblem, Step
from bench.search.trial_summary import bare_result, note_of, with_account

TRIAL, SETTLE = 60.0, 1.0
MAX_INVALID, MAX_DEATHS = 3, 2


class Rfc2544(Struct, frozen=True):
    """Halves the range on a logarithmic scale until it is as narrow as the precision."""

    question: SearchProblem
    steps: tuple[Step, ...] = ()

    def after(self, seen: Measurement, verdict: Verdict) -> "Rfc2544":
        return replace(self, steps=(*self.steps, Step(replace(seen, series=Series()), verdict)))

    def next_trial(self) -> PlannedTrial | None:
        low, high, lowest, highest = self._passed, self._failed, float(self.question.search.lowest), self._top
        if (
            self._gone
            or low >= highest
            or high <= lowest
            or high / max(low, lowest) <= 1 + self.question.search.precision
        ):
            return None
        rate = (max(low, lowest) * min(high, highest)) ** 0.5
        if low == 0.0 and rate < lowest * (1 + self.question.search.precision):
            rate = lowest
        if high == float("inf") and rate > highest / (1 + self.question.search.precision):
            rate = highest
        settle = max(SETTLE, 2 * self.question.batch_interval)
        window = max(TRIAL, 15 * self.question.batch_interval)
        drain = float(self.question.timing.drain) + 2 * self.question.batch_interval
        if sum(step.seen.seconds for step in self.steps) + settle + window + drain > self.question.search.budget:
            return None
        return PlannedTrial(len(self.steps), float(rate), settle, window, "search")

    def result(self) -> Result:
        low, high = self._passed, self._failed
        late = [step.seen for step in self.steps if step.verdict.why == "generator"]
        bare = bare_result(self.question, self.steps, max((seen.planned.rate for seen in late), default=None))
        if self._gone:
            return replace(bare, reason=f"gave up: {note_of(self.steps)}" if not late else "no valid trial: generator")
        if low == 0.0:
            known = high < float("inf")
            return (
                replace(bare, status="upper-bound", reason="floor", high_hz=high)
                if known
                else replace(bare, reason="no trial")
            )
        found = replace(
            bare, low_hz=low, high_hz=high if high < float("inf") else None, estimate_hz=low, confirmed_hz=low
        )
        best = next(
            step for step in reversed(self.steps) if step.seen.planned.rate == low and step.verdict.word == "sustained"
        )
        reach = (
            low >= 0.999 * self._top and self._top < self.question.highest
        )  # what the generator is known to be good for
        limited = reach or any(seen.planned.rate <= 1.001 * high for seen in late)
        if limited:
            return with_account(
                replace(found, status="lower-bound", reason="generator", high_hz=None), best, "generator"
            )
        narrow = high / low <= 1 + self.question.search.precision
        if not narrow:
            return with_account(replace(found, status="lower-bound", reason="budget"), best, None)
        return with_account(replace(found, status="measured", estimate_hz=(low * high) ** 0.5), best, None)

    @property
    def _top(self) -> float:
        reach = 0.95 * self.question.generator_hz if self.question.generator_hz is not None else float("inf")
        return min(self.question.highest, max(reach, float(self.question.search.lowest)))

    @property
    def _passed(self) -> float:
        """The highest rate below every failed one that was sustained; 0 for none."""
        rates = [step.seen.planned.rate for step in self.steps if step.verdict.word == "sustained"]
        return max((rate for rate in rates if rate < self._failed), default=0.0)

    @property
    def _failed(self) -> float:
        """The lowest rate that was not: a late generator cannot show a higher one either."""
        return min((step.seen.planned.rate for step in self.steps if _is_failed(step)), default=float("inf"))

    @property
    def _gone(self) -> bool:
        deaths = sum(step.seen.ended == "framework died" for step in self.steps)
        invalid = sum(step.verdict.word == "invalid" and step.verdict.why != "generator" for step in self.steps)
        return deaths >= MAX_DEATHS or invalid >= MAX_INVALID


def _is_failed(step: Step) -> bool:
    return step.verdict.word == "overloaded" or step.verdict.why == "generator"
