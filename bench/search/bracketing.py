"""The bracket of a bisection: the rates between which the capacity lies, updated by one trial after the other."""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.foreign_work import DEATHS
from bench.analysis.verdict import GENERATOR_LATE
from bench.search.problem import Step

MIN_LOSS = 0.005
"""An overloaded trial with a smaller loss gives no capacity estimate."""


class Bracket(Struct, frozen=True):
    """The bounds that follow from the trials so far; rates in messages/s. Later trials overrule earlier ones.

    A generator that was late once, at the rate `late_at`, may have met other work on its machine: that rate is tried
    again.
    """

    sustained: tuple[Step, ...] = ()
    """the sustained trials below `high`, in ascending order of their rates"""
    high: float | None = None
    """the lowest overloaded rate"""
    generator_limit: float | None = None
    """the lowest rate that the generator did not reach"""
    late_at: float | None = None
    estimate: float | None = None
    """the latest estimate of the capacity, unless a higher rate was sustained since"""
    lowest_overloaded: float | None = None
    """the same as `high`, but with trials of a cold system"""
    contradictions: int = 0
    deaths: int = 0
    invalid: int = 0
    """consecutive invalid trials"""

    @property
    def low(self) -> float | None:
        """The highest sustained rate."""
        return self.sustained[-1].measurement.planned.rate if self.sustained else None

    @property
    def confirmed(self) -> Step | None:
        """The highest trial whose rate was sustained twice: by itself, and by one at its rate or above."""
        return self.sustained[-2] if len(self.sustained) > 1 else None

    @property
    def upper(self) -> float | None:
        """The lowest rate that the system or the generator did not reach."""
        rates = [rate for rate in (self.high, self.generator_limit) if rate is not None]
        return min(rates) if rates else None

    def add(self, step: Step, precision: float) -> "Bracket":
        """Return the bracket with one more trial; `precision` is the relative width to which rates are told apart."""
        rate, verdict = step.measurement.planned.rate, step.verdict
        if verdict.word == "invalid":
            return self._add_late(rate) if verdict.why == GENERATOR_LATE else replace(self, invalid=self.invalid + 1)
        reached = self.generator_limit is not None and rate >= self.generator_limit
        limit = None if reached else self.generator_limit
        bracket = replace(self, invalid=0, late_at=None, generator_limit=limit)
        if step.measurement.ended in DEATHS:
            return replace(bracket, deaths=self.deaths + 1)  # no bound: the same rate is tried again
        if verdict.word == "overloaded" and verdict.loss > MIN_LOSS:
            bracket = replace(bracket, estimate=rate * (1 - verdict.loss))
        if verdict.word == "sustained":
            return bracket.add_sustained(step, precision)
        bracket = replace(bracket, lowest_overloaded=min(rate, self.lowest_overloaded or rate))
        return bracket if step.measurement.planned.purpose == "warm-up" else bracket.add_overloaded(rate)

    def add_sustained(self, step: Step, precision: float) -> "Bracket":
        """Return the bracket with a sustained trial, which overrules an overloaded one at its rate or below."""
        rate = step.measurement.planned.rate
        refuted = self.estimate is not None and rate > self.estimate * (1 + precision) ** 0.5
        contradicts = self.high is not None and rate >= self.high
        return replace(
            self,
            sustained=tuple(sorted((*self.sustained, step), key=lambda each: each.measurement.planned.rate)),
            high=None if contradicts else self.high,
            estimate=None if refuted else self.estimate,
            contradictions=self.contradictions + contradicts,
        )

    def add_overloaded(self, rate: float) -> "Bracket":
        """Return the bracket with a trial overloaded at `rate`, which overrules sustained ones at its rate or above."""
        below = tuple(step for step in self.sustained if step.measurement.planned.rate < rate)
        contradicts = len(below) < len(self.sustained)
        high = min(rate, self.high or rate)
        return replace(self, sustained=below, high=high, contradictions=self.contradictions + contradicts)

    def _add_late(self, rate: float) -> "Bracket":
        if self.late_at != rate:
            return replace(self, late_at=rate, invalid=0)
        return replace(self, late_at=None, generator_limit=min(rate, self.generator_limit or rate), invalid=0)
