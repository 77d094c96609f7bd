"""The two-counter search: the highest sustained rate with an interval that means what it says, and a reason where there is none.

Bracket, warm-up, then Bayesian bisection in which an overloaded trial is a reading of the ceiling and a sustained one says "at
least"; a soak at the lower end of the interval confirms it. It sees only the offered, sent and processed counters. The project's
max-rate-search reference is the specification; bench.search.parameters has the constants.
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.bounds import limited_by
from bench.analysis.stability import drift_of
from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.objectives import each_objective
from bench.search.parameters import Durations, SearchParameters
from bench.search.problem import SearchProblem, Step
from bench.search.state import Read, SearchState
from bench.search.trial_summary import bare_result, note_of, reached, with_account


class TwoCounter(Struct, frozen=True, eq=False):
    """A search as a value: everything follows from the question and the steps, so that a resumed one is the same."""

    question: SearchProblem
    recipe: SearchParameters = SearchParameters()
    read: Read = drift_of
    steps: tuple[Step, ...] = ()
    so_far: SearchState | None = None

    @property
    def course(self) -> SearchState:
        """Where the search stands."""
        return self.so_far or SearchState.of(self.question, self.recipe, self.read)

    def after(self, seen: Measurement, verdict: Verdict) -> "TwoCounter":
        course = self.course.after(Step(seen, verdict))
        return replace(self, steps=(*self.steps, Step(replace(seen, series=Series()), verdict)), so_far=course)

    def next_trial(self) -> PlannedTrial | None:
        course = self.course
        planned = course.planned()
        if planned is None:
            return None
        durations, left = Durations(self.question, self.recipe), float(self.question.search.budget) - self._spent()
        if course.stage == "trials" and planned.purpose == "search":
            soak = course.soak()
            if durations.longest(planned) + durations.longest(soak) > left:
                planned = soak  # the last trial that the budget allows confirms something
        if durations.longest(planned) > left or (planned.purpose == "confirm" and course.confirmed is not None):
            return None
        return replace(planned, number=len(self.steps))

    def result(self) -> Result:
        course = self.course
        result = self._with_rates(bare_result(self.question, self.steps, self._generator()), course)
        if course.observations is not None:
            asked, prior, inflation = self.question.objectives, course.observations.prior, self.recipe.inflation
            result = replace(result, objectives=each_objective(course.looks, asked, prior, inflation))
        best = self._best(result)
        if result.status == "failed" or best is None:
            return result
        return with_account(result, best, self._limit(result))

    def _spent(self) -> float:
        """Seconds that the trials took, and what the restarts between them may have cost."""
        return sum(step.seen.seconds + self.recipe.restart * (not step.seen.deployment_reusable) for step in self.steps)

    def _with_rates(self, bare: Result, course: SearchState) -> Result:
        end, lowest = course.end, course.climb.lowest
        if end == "died":
            return replace(bare, reason=f"the framework died {course.deaths} times: {note_of(self.steps)}")
        if end == "invalid":
            why = self.steps[-1].verdict.why or "the counters contradict themselves"
            return replace(bare, reason=f"no valid trial: {why}")
        if end == "floor":
            return replace(bare, status="upper-bound", reason="floor", high_hz=lowest)
        if end in ("generator", "range"):
            reason, top = "generator" if end == "generator" else "highest", course.top
            return replace(bare, status="lower-bound", reason=reason, estimate_hz=top, low_hz=top, confirmed_hz=top)
        if course.observations is None:
            return self._without_trials(bare, course)
        found = _with_interval(bare, course)
        if end == "unstable":
            return replace(found, status="unstable", reason="trials disagree")
        if end == "measured":
            return replace(found, status="measured")
        return replace(
            found, status="lower-bound", reason="budget", high_hz=None if course.open_above else found.high_hz
        )

    def _without_trials(self, bare: Result, course: SearchState) -> Result:
        """What the climb alone says, when the budget ended it."""
        best, failed = course.climb.best * (1 - self.recipe.bracket_loss), course.climb.failed
        if best > 0:
            return replace(bare, status="lower-bound", reason="budget", estimate_hz=best, low_hz=best)
        if failed < float("inf"):
            why = f"overloaded at {failed:g} /s, the lowest rate tried"
            return replace(bare, status="upper-bound", reason=why, high_hz=failed)
        return replace(bare, reason="no trial within the budget")

    def _generator(self) -> float | None:
        """The generator's ceiling: as calibrated, or the highest rate that it reached when it was the limit."""
        rates = [reached(step.seen) for step in self.steps if step.verdict.why == "generator"]
        return self.question.generator_hz or max(rates, default=None)

    def _best(self, result: Result) -> Step | None:
        """The sustained trial that the result rests on: at the confirmed rate, else the highest."""
        sustained = [
            step for step in self.steps if step.verdict.word == "sustained" and step.seen.planned.purpose != "warm-up"
        ]
        at_rate = [step for step in sustained if step.seen.planned.rate == result.confirmed_hz]
        return (at_rate or sorted(sustained, key=lambda step: step.seen.planned.rate))[-1] if sustained else None

    def _limit(self, result: Result) -> str | None:
        if result.reason == "generator":
            return "generator"
        top = result.confirmed_hz or result.low_hz or 0.0
        run_trial = [
            step for step in self.steps if step.verdict.word == "overloaded" and step.seen.planned.purpose != "warm-up"
        ]
        over = [step for step in run_trial if step.seen.planned.rate > top]
        nearest = min(over, key=lambda step: step.seen.planned.rate, default=None)
        return limited_by(nearest.verdict.why, nearest.seen.cpu) if nearest is not None else None


def _with_interval(bare: Result, course: SearchState) -> Result:
    """The posterior's median and 95 % interval, whose half-widths are inflated to what they proved to be."""
    assert course.observations is not None
    low, middle, high = course.observations.quantiles(0.025, 0.5, 0.975)
    power = course.recipe.inflation
    return replace(
        bare,
        estimate_hz=middle,
        low_hz=middle * (low / middle) ** power,
        high_hz=middle * (high / middle) ** power,
        confirmed_hz=course.confirmed,
    )
