"""The two-counter search: the highest sustained rate of a cell with a calibrated 95 % interval.

Bracketing, warm-up, then Bayesian bisection, in which an overloaded trial gives an estimate of the capacity and a
sustained one a lower bound; a confirmation trial at the lower end of the interval ends it. It uses only the offered,
sent and processed counters. Specification: the project's max-rate-search reference. Constants:
bench.search.parameters.
"""

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.bounds import infer_limit
from bench.analysis.stability import assess_stability
from bench.analysis.verdict import Verdict
from bench.model.measurement import Measurement, PlannedTrial, Result, Series
from bench.search.durations import TwoCounterDurations
from bench.search.learning import learn
from bench.search.objectives import estimate_objectives
from bench.search.parameters import SearchParameters
from bench.search.planning import plan_confirmation, plan_next
from bench.search.problem import SearchProblem, Step
from bench.search.state import Assess, SearchState, start_search
from bench.search.trial_summary import last_note, result_without_rate, sent_rate, with_trial


class TwoCounter(Struct, frozen=True, eq=False):
    """The search as a value: its state follows from the problem and the steps, so that it can be resumed."""

    problem: SearchProblem
    parameters: SearchParameters = SearchParameters()
    assess: Assess = assess_stability
    steps: tuple[Step, ...] = ()
    last_state: SearchState | None = None

    @property
    def state(self) -> SearchState:
        """The state after the steps."""
        return self.last_state or start_search(self.problem, self.parameters, self.assess)

    def after(self, measurement: Measurement, verdict: Verdict) -> "TwoCounter":
        """Return the search with one more judged trial; the trial's series of counters is used and not kept."""
        state = learn(self.state, Step(measurement, verdict))
        step = Step(replace(measurement, series=Series()), verdict)
        return replace(self, steps=(*self.steps, step), last_state=state)

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial that the budget allows; None when the search is finished.

        The last trial that the budget allows is a confirmation trial.
        """
        state = self.state
        planned = plan_next(state)
        if planned is None:
            return None
        durations = TwoCounterDurations(self.problem, self.parameters)
        left = float(self.problem.search.budget) - self._spent_seconds()
        if state.stage == "trials" and planned.purpose == "search":
            confirmation = plan_confirmation(state)
            if durations.max_seconds(planned) + durations.max_seconds(confirmation) > left:
                planned = confirmation
        if durations.max_seconds(planned) > left or (planned.purpose == "confirm" and state.confirmed is not None):
            return None
        return replace(planned, number=len(self.steps))

    def result(self) -> Result:
        """Return the result so far: estimate, interval, confirmed rate, status and reason."""
        state = self.state
        result = self._with_rates(result_without_rate(self.problem, self.steps, self._generator_hz()), state)
        if state.observations is not None:
            prior, inflation = state.observations.prior, self.parameters.inflation
            objectives = estimate_objectives(state.assessed_trials, self.problem.objectives, prior, inflation)
            result = replace(result, objectives=objectives)
        best = self._best_step(result)
        if result.status == "failed" or best is None:
            return result
        return with_trial(result, best, self._limit(result))

    def _spent_seconds(self) -> float:
        """Return the duration of the trials and of the restarts between them."""
        restart = self.parameters.restart
        return sum(step.measurement.seconds + restart * step.measurement.leaves_cold for step in self.steps)

    def _with_rates(self, result: Result, state: SearchState) -> Result:
        end, lowest, highest = state.end, state.bracketing.lowest, state.highest
        if end == "died":
            return replace(result, reason=f"the framework died {state.deaths} times: {last_note(self.steps)}")
        if end == "invalid":
            why = self.steps[-1].verdict.why or "the counters contradict themselves"
            return replace(result, reason=f"no valid trial: {why}")
        if end == "lowest rate":
            return replace(result, status="upper-bound", reason="floor", high_hz=lowest)
        if end in ("generator", "highest rate"):
            reason = "generator" if end == "generator" else "highest"
            rates = {"estimate_hz": highest, "low_hz": highest, "confirmed_hz": highest}
            return replace(result, status="lower-bound", reason=reason, **rates)
        if state.observations is None:
            return self._with_bracket(result, state)
        result = _with_interval(result, state)
        if end == "unstable":
            return replace(result, status="unstable", reason="trials disagree")
        if end == "measured":
            return replace(result, status="measured")
        high = None if state.open_above else result.high_hz
        return replace(result, status="lower-bound", reason="budget", high_hz=high)

    def _with_bracket(self, result: Result, state: SearchState) -> Result:
        """Return the result of a search whose budget ended during bracketing."""
        sustained = state.bracketing.sustained * (1 - self.parameters.bracket_loss)
        failed = state.bracketing.failed
        if sustained > 0:
            return replace(result, status="lower-bound", reason="budget", estimate_hz=sustained, low_hz=sustained)
        if failed < float("inf"):
            why = f"overloaded at {failed:g} /s, the lowest rate tried"
            return replace(result, status="upper-bound", reason=why, high_hz=failed)
        return replace(result, reason="no trial within the budget")

    def _generator_hz(self) -> float | None:
        """Return the generator's calibrated ceiling, or else the highest rate that it sent when it was late."""
        rates = [sent_rate(step.measurement) for step in self.steps if step.verdict.why == "generator"]
        return self.problem.generator_hz or max(rates, default=None)

    def _steps_with_verdict(self, word: str) -> list[Step]:
        return [
            step for step in self.steps if step.verdict.word == word and step.measurement.planned.purpose != "warm-up"
        ]

    def _best_step(self, result: Result) -> Step | None:
        """Return the sustained trial behind the result: at the confirmed rate, else the one of the highest rate."""
        sustained = self._steps_with_verdict("sustained")
        at_rate = [step for step in sustained if step.measurement.planned.rate == result.confirmed_hz]
        by_rate = sorted(sustained, key=lambda step: step.measurement.planned.rate)
        return (at_rate or by_rate)[-1] if sustained else None

    def _limit(self, result: Result) -> str | None:
        """Return the resource that limited the overloaded trial next above the result's rate."""
        if result.reason == "generator":
            return "generator"
        rate = result.confirmed_hz or result.low_hz or 0.0
        above = [step for step in self._steps_with_verdict("overloaded") if step.measurement.planned.rate > rate]
        nearest = min(above, key=lambda step: step.measurement.planned.rate, default=None)
        return infer_limit(nearest.verdict.why, nearest.measurement.cpu) if nearest is not None else None


def _with_interval(result: Result, state: SearchState) -> Result:
    """Return the result with the posterior's median m and 95 % interval, each end q as m * (q / m) ** inflation.

    The inflation makes the interval cover the truth as often as it says: on simulated systems, whose errors it was
    calibrated with (max-rate-search reference, section 8). Assumption: the noise is stationary over the search.
    """
    low, middle, high = state.known_observations.quantiles(0.025, 0.5, 0.975)
    power = state.parameters.inflation
    return replace(
        result,
        estimate_hz=middle,
        low_hz=middle * (low / middle) ** power,
        high_hz=middle * (high / middle) ** power,
        confirmed_hz=state.confirmed,
    )
