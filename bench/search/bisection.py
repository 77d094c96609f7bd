"""Bracket and bisection on a log scale; each answer is confirmed by a second trial.

An overloaded trial is also a reading of the ceiling (rate x (1 - loss)), so the next trials are placed half the precision below and
above it; where there is no reading the bracket grows sevenfold and shrinks by its geometric middle. The first trial of a
cell meets a cold system: overloaded, it steers where to go, but bounds nothing.
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.bounds import limited_by
from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.search.problem import SearchProblem, Step
from bench.search.trial_summary import bare_result, note_of, with_account

GROWTH, CAREFUL_GROWTH = 7, 1.6
"""Of the rate from one sustained trial to the next: while nothing was ever too much, and after something was."""
MAX_DEATHS = 2
MAX_INVALID = 5
MAX_CONTRADICTIONS = 3


class Bracket(Struct, frozen=True):
    """What the trials so far allow: sustained at `low`, overloaded at `high`, beyond the generator's reach at `cap`.

    A generator that was late once, at the rate `doubted`, may have met a busy moment of the machine: it is asked again.
    """

    kept_up: tuple[Step, ...] = ()
    """the sustained trials below `high`, in ascending order of their rates"""
    high: float | None = None
    cap: float | None = None
    doubted: float | None = None
    ceiling: float | None = None
    """the latest reading of it, unless a higher rate was sustained since"""
    too_much: float | None = None
    """the lowest overloaded rate, a cold system's included"""
    contradictions: int = 0
    deaths: int = 0
    invalid: int = 0

    @property
    def low(self) -> float | None:
        """The highest rate that was sustained."""
        return self.kept_up[-1].seen.planned.rate if self.kept_up else None

    @property
    def confirmed(self) -> Step | None:
        """The highest trial whose rate was sustained twice: by it, and by one at its rate or above."""
        return self.kept_up[-2] if len(self.kept_up) > 1 else None

    def after(self, step: Step, precision: float) -> "Bracket":
        """The bracket that knows one more trial; later evidence wins over earlier."""
        rate, verdict = step.seen.planned.rate, step.verdict
        warm_up = step.seen.planned.purpose == "warm-up"
        if verdict.word == "invalid":
            return self._late(rate) if verdict.why == "generator" else replace(self, invalid=self.invalid + 1)
        reached = self.cap is not None and rate >= self.cap
        known = replace(self, invalid=0, doubted=None, cap=None if reached else self.cap)
        if step.seen.ended in ("framework died", "source died"):
            return replace(known, deaths=self.deaths + 1)  # it bounds nothing: the rate is asked for again
        if verdict.word == "overloaded" and verdict.loss > 0.005:
            known = replace(known, ceiling=rate * (1 - verdict.loss))
        if verdict.word == "sustained":
            return known.with_sustained(step, precision)
        known = replace(known, too_much=min(rate, self.too_much or rate))
        return known if warm_up else known.with_overloaded(rate)

    def with_sustained(self, step: Step, precision: float) -> "Bracket":
        rate = step.seen.planned.rate
        refuted = self.ceiling is not None and rate > self.ceiling * (1 + precision) ** 0.5
        against = self.high is not None and rate >= self.high
        return replace(
            self,
            kept_up=tuple(sorted((*self.kept_up, step), key=lambda known: known.seen.planned.rate)),
            high=None if against else self.high,
            ceiling=None if refuted else self.ceiling,
            contradictions=self.contradictions + against,
        )

    def with_overloaded(self, rate: float) -> "Bracket":
        below = tuple(step for step in self.kept_up if step.seen.planned.rate < rate)
        against = len(below) < len(self.kept_up)
        return replace(
            self, kept_up=below, high=min(rate, self.high or rate), contradictions=self.contradictions + against
        )

    def _late(self, rate: float) -> "Bracket":
        if self.doubted != rate:
            return replace(self, doubted=rate, invalid=0)
        return replace(self, doubted=None, cap=min(rate, self.cap or rate), invalid=0)

    @property
    def top(self) -> float | None:
        """The lowest rate that is known not to be reached, by the system or by the generator."""
        known = [rate for rate in (self.high, self.cap) if rate is not None]
        return min(known) if known else None


class Bisection(Struct, frozen=True):
    """The plain strategy; everything follows from the question and the steps."""

    question: SearchProblem
    steps: tuple[Step, ...] = ()

    def after(self, seen: Measurement, verdict: Verdict) -> "Bisection":
        return replace(self, steps=(*self.steps, Step(replace(seen, series=type(seen.series)()), verdict)))

    def next_trial(self) -> PlannedTrial | None:
        pace, number = self.question.pace, len(self.steps)
        if not self.steps:
            return pace.planned(0, self.question.start, "warm-up")
        bracket = self._bracket()
        if self._hopeless(bracket) or self._answered(bracket):
            return None
        if bracket.doubted is None and self._narrow(bracket) and bracket.low is not None:
            return pace.planned(number, bracket.low, "confirm")
        rate = bracket.doubted or self._next_rate(bracket)
        if self._spent() + pace.longest(rate) > self.question.search.budget:
            return None
        return pace.planned(number, rate, "search")

    def result(self) -> Result:
        bracket = self._bracket()
        best = bracket.confirmed or self._best(bracket)
        result = bare_result(self.question, self.steps, self._generator())
        result = self._with_status(result, bracket)
        if result.status == "failed" or best is None:
            return result
        return with_account(result, best, self._limit(result, bracket))

    def _bracket(self) -> Bracket:
        bracket = Bracket()
        for step in self.steps:
            bracket = bracket.after(step, float(self.question.search.precision))
        return bracket

    def _spent(self) -> float:
        return sum(step.seen.seconds for step in self.steps)

    def _hopeless(self, bracket: Bracket) -> bool:
        if (
            bracket.deaths >= MAX_DEATHS
            or bracket.invalid >= MAX_INVALID
            or bracket.contradictions > MAX_CONTRADICTIONS
        ):
            return True
        return bracket.top is not None and bracket.top <= self.question.search.lowest

    def _narrow(self, bracket: Bracket) -> bool:
        """Whether low and what lies above it are as close as asked for, or nothing above low is worth a trial."""
        if bracket.low is None:
            return False
        if bracket.top is None:
            return bracket.low >= self.question.highest
        return bracket.top / bracket.low <= 1 + self.question.search.precision + 1e-9

    def _answered(self, bracket: Bracket) -> bool:
        """Whether what was sustained twice is as close to what lies above it as asked for."""
        if bracket.confirmed is None:
            return False
        rate = bracket.confirmed.seen.planned.rate
        top = bracket.top or self.question.highest
        return top / rate <= 1 + self.question.search.precision + 1e-9 and self._narrow(bracket)

    def _next_rate(self, bracket: Bracket) -> float:
        lowest, highest = float(self.question.search.lowest), self.question.highest
        low, top = bracket.low, bracket.top
        below, above = self._around(bracket.ceiling)
        if top is None:
            if low is None:
                return min(highest, self.question.start if below is None else max(lowest, below))
            return min(
                highest, above if above is not None and above > low * 1.01 else self._higher(low, bracket.too_much)
            )
        if low is None:
            return max(lowest, below if below is not None and below < 0.99 * top else top / 1.5)
        wide = 1 + float(self.question.search.precision)
        margin = wide**0.25
        if below is not None and low * margin < below < top / margin:
            return below
        higher = max(above or 0.0, float(low * wide**0.95))
        if above is not None and higher < top / margin:
            return higher
        return float((low * top) ** 0.5)

    def _higher(self, low: float, too_much: float | None) -> float:
        """A rate above `low` where no bound and no reading helps."""
        if too_much is None:
            return GROWTH * low
        return float((low * too_much) ** 0.5) if low * CAREFUL_GROWTH < too_much else CAREFUL_GROWTH * low

    def _around(self, ceiling: float | None) -> tuple[float, float] | tuple[None, None]:
        """Just below and just above a reading of the ceiling, together nine tenths of the precision apart."""
        if ceiling is None:
            return None, None
        half = (1 + self.question.search.precision) ** 0.45
        return ceiling / half, ceiling * half

    def _best(self, bracket: Bracket) -> Step | None:
        sustained = [
            step for step in self.steps if step.verdict.word == "sustained" and step.seen.planned.rate == bracket.low
        ]
        return sustained[-1] if sustained else None

    def _generator(self) -> float | None:
        """The highest rate that the generator reached in a trial in which it was the limit."""
        limited = [step.seen for step in self.steps if step.verdict.why == "generator"]
        rates = [seen.planned.rate * (1 - seen.late / (seen.planned.settle + seen.planned.window)) for seen in limited]
        return max(rates, default=None)

    def _with_status(self, result: Result, bracket: Bracket) -> Result:
        low, high = bracket.low, bracket.high
        if bracket.deaths >= MAX_DEATHS:
            return replace(result, reason=f"{self.steps[-1].seen.ended} {bracket.deaths} times: {note_of(self.steps)}")
        if bracket.invalid >= MAX_INVALID:
            return replace(result, reason=f"no valid trial: {self.steps[-1].verdict.why}")
        if bracket.contradictions > MAX_CONTRADICTIONS:
            return replace(result, status="unstable", reason="trials disagree", low_hz=low, high_hz=high)
        if low is None:
            return self._without_low(result, bracket)
        confirmed = bracket.confirmed.seen.planned.rate if bracket.confirmed is not None else None
        found = replace(result, low_hz=low, high_hz=high, confirmed_hz=confirmed)
        if (
            high is not None
            and confirmed is not None
            and self._answered(bracket)
            and (bracket.cap is None or high <= bracket.cap)
        ):
            return replace(found, status="measured", low_hz=confirmed, estimate_hz=(confirmed * high) ** 0.5)
        reason = "generator" if bracket.cap is not None and (high is None or bracket.cap < high) else "budget"
        if high is None and bracket.cap is None and low >= self.question.search.highest:
            reason = "highest"
        return replace(found, status="lower-bound", reason=reason, estimate_hz=low)

    def _without_low(self, result: Result, bracket: Bracket) -> Result:
        if bracket.high is not None:
            lowest = bracket.high <= self.question.search.lowest
            why = f"overloaded at {bracket.high:g} /s, the lowest rate tried: {self._why_overloaded(bracket.high)}"
            return replace(result, status="upper-bound", reason=why if not lowest else "floor", high_hz=bracket.high)
        if bracket.cap is not None:
            return replace(result, reason=f"the generator did not reach even {bracket.cap:g} /s")
        return replace(result, reason="no trial within the budget")

    def _why_overloaded(self, rate: float | None) -> str:
        found = [
            step.verdict.why
            for step in self.steps
            if step.verdict.word == "overloaded" and step.seen.planned.rate == rate
        ]
        return found[-1] if found else ""

    def _limit(self, result: Result, bracket: Bracket) -> str | None:
        if result.reason == "generator":
            return "generator"
        over = [
            step.seen
            for step in self.steps
            if step.verdict.word == "overloaded" and step.seen.planned.rate == bracket.high
        ]
        return limited_by(self._why_overloaded(bracket.high), over[-1].cpu if over else {})
