"""The two-counter search: the highest sustained rate of a cell with a calibrated 95 % interval.

Probes at rates that grow until one is overloaded, or from a neighbour's estimate; then trials near the capacity, each
of which gives a reading of it: an overloaded trial, or batches that report how long they took, an estimate, a
sustained one a lower bound. The interval is that of a posterior over all readings. It uses only the offered, sent and
processed counters and the times of batches. Readings: bench.analysis.capacity_reading; posterior:
bench.search.posterior; constants: bench.search.parameters.
"""

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Literal

from msgspec.structs import replace

from bench.analysis.bounds import infer_limit
from bench.analysis.capacity_reading import Reading, is_of_backlog
from bench.analysis.first_result import latency_of
from bench.analysis.foreign_work import explainable_loss
from bench.analysis.stability import Stability, assess_stability
from bench.analysis.verdict import GENERATOR_LATE, Cause, Verdict
from bench.model.measurement import Batches, Measurement, PlannedTrial, Result, Series
from bench.search.agreement import is_contradictory
from bench.search.objectives import AssessedTrial, estimate_objectives
from bench.search.observations import Evidence
from bench.search.parameters import SearchParameters
from bench.search.problem import SearchPlugin, SearchProblem, Step
from bench.search.trial_planning import plan_trial
from bench.search.trial_summary import last_note, result_without_rate, with_trial, without_valid_trial

End = Literal["", "died", "invalid", "lowest rate", "highest rate", "unstable"]
Assess = Callable[[Measurement], Stability]
Z = 1.96


class TwoCounter:
    """The search as an immutable value: its plan and result follow from the problem and the steps."""

    def __init__(
        self,
        problem: SearchProblem,
        parameters: SearchParameters | None = None,
        assess: Assess | None = None,
        trials: tuple[AssessedTrial, ...] = (),
        evidence: Evidence | None = None,
    ) -> None:
        self.problem, self.parameters = problem, parameters or SearchParameters()
        keep = problem.objectives.batches == "keep"
        self._assess = assess or partial(
            assess_stability, precision=float(problem.search.precision), keep_interval=keep
        )
        self._trials = trials
        self.evidence = evidence or Evidence(problem, self.parameters, (), ())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The trials so far, without their series."""
        return self.evidence.steps

    def after(self, measurement: Measurement, verdict: Verdict) -> "TwoCounter":
        """Return the search with one more judged trial; the trial's series of counters is used and not kept."""
        stability, known = self._assess(measurement), self.evidence
        reading: Reading | None = known.read(measurement, verdict, stability)
        if stability.inconsistent and verdict.word != "invalid":
            verdict = Verdict("invalid", "the counters contradict themselves", cause="harness")
        short = replace(measurement, series=Series(), batches=Batches())
        step = Step(short, verdict, latency_of(measurement))
        evidence = Evidence(self.problem, self.parameters, (*known.steps, step), (*known.readings, reading))
        followed = measurement.ended in ("complete", "hopeless")
        backlogged = verdict.word == "overloaded" and is_of_backlog(verdict, measurement)
        valid = verdict.word != "invalid" and measurement.planned.purpose != "warm-up" and followed
        trials = (*self._trials, AssessedTrial(short, stability, backlogged=backlogged)) if valid else self._trials
        return TwoCounter(self.problem, self.parameters, self._assess, trials, evidence)

    def next_trial(self) -> PlannedTrial | None:
        """Return the next trial that the budget allows; None when the search is finished."""
        return None if self._end else plan_trial(self.evidence)

    def result(self) -> Result:
        """Return the result so far: estimate, interval, confirmed rate, status and reason."""
        evidence = self.evidence
        generator = self.problem.generator_hz or max(evidence.generator_rates, default=None)
        result = self._with_rates(result_without_rate(self.problem, self.steps, generator))
        if evidence.known:
            inflation = self.parameters.inflation
            objectives = estimate_objectives(self._trials, self.problem.objectives, evidence.lowest, inflation)
            if result.status == "measured" and self._only_backlog:
                rates = {"estimate_hz": result.estimate_hz, "low_hz": result.low_hz, "high_hz": result.high_hz}
                objectives = tuple(replace(each, **rates) if each.name == "backlog" else each for each in objectives)
            result = replace(result, objectives=objectives)
        if result.status != "failed" and (result.low_hz is not None or result.high_hz is not None):
            result = replace(result, interval="95 %")
        best = self._best_step(result)
        return (
            result
            if best is None or result.status in ("failed", "not-measured")
            else with_trial(result, best, self._limit(result))
        )

    @cached_property
    def _end(self) -> End:
        """The reason why the search ends, whatever time is left; "" if it goes on."""
        evidence, parameters = self.evidence, self.parameters
        if evidence.deaths >= parameters.max_deaths:
            return "died"
        last = [step.verdict for step in self.steps if step.verdict.why != GENERATOR_LATE][-parameters.max_invalid :]
        ours = all(verdict.cause == "harness" for verdict in last)
        if [verdict.word for verdict in last] == ["invalid"] * parameters.max_invalid and (ours or not evidence.known):
            return "invalid"
        if evidence.missed_beside_other_work >= parameters.max_invalid:
            return "invalid"
        at_lowest = [
            step.verdict.word for step in self.steps if step.measurement.planned.rate <= 1.01 * evidence.lowest
        ]
        if at_lowest[-parameters.max_lowest_failures :] == ["overloaded"] * parameters.max_lowest_failures:
            return "lowest rate"
        enough = min(parameters.longest, parameters.highest_share * float(self.problem.search.budget))
        contrary = sum(reading.seconds for reading in evidence.estimates)
        if evidence.seconds_at_highest >= max(enough, parameters.highest_factor * contrary):
            return "highest rate"
        return "unstable" if is_contradictory(evidence) else ""

    @property
    def _only_backlog(self) -> bool:
        """True if no trial was overloaded for another reason than its backlog, whose answer is then the result's."""
        overloaded = [step for step in self.steps if step.verdict.word == "overloaded"]
        return all(is_of_backlog(step.verdict, step.measurement) for step in overloaded)

    def _with_rates(self, result: Result) -> Result:
        evidence = self.evidence
        if self._end == "died":
            ended = self.steps[-1].measurement.ended
            why = f"{ended} {self.parameters.max_deaths} times: {last_note(self.steps)}"
            return replace(result, reason=why, low_hz=evidence.sustained or None)
        if self._end == "invalid":
            return self._invalid(result)
        if evidence.missed_beside_other_work and evidence.estimates:
            return self._invalid(result, "other work")
        if self._end == "lowest rate":
            return replace(result, status="upper-bound", reason="floor", high_hz=evidence.lowest)
        shown = evidence.sustained or evidence.estimates or evidence.overloaded < math.inf
        if not shown:
            return self._invalid(result) if self.steps else replace(result, reason="no trial within the budget")
        is_open = bool(evidence.sustained) and not evidence.has_upper_end and self._end != "unstable"
        if self._end == "highest rate" or is_open:
            reason = "budget" if not self._end else ("generator" if evidence.generator_limited else "highest")
            low = self._lower_bound()
            rates = {"estimate_hz": evidence.sustained, "low_hz": low, "confirmed_hz": self._confirmed_bound(low)}
            return replace(result, status="lower-bound", reason=reason, **rates)
        low, middle, high = evidence.interval
        if self.problem.bound_hz is not None:
            high = min(high, max(middle, self.problem.bound_hz))
        if self._end == "unstable":
            result = replace(result, reason="trials disagree", status="unstable")
            return replace(result, estimate_hz=middle, low_hz=low, high_hz=high, confirmed_hz=evidence.confirmed)
        if not evidence.sustained and (self.problem.batch_interval == 0 or not evidence.estimates):
            why, estimate = "no rate was sustained within the budget", middle if evidence.estimates else None
            return replace(result, status="upper-bound", reason=why, estimate_hz=estimate, high_hz=high)
        return replace(
            result,
            status="measured",
            estimate_hz=middle,
            low_hz=low,
            high_hz=high,
            precision_reached=evidence.is_precise,
            noise=evidence.posterior.noise_likelihood,
            warm_ups=evidence.posterior.warm_up_likelihood if self.problem.cold else (),
            confirmed_hz=evidence.confirmed,
            growing_hz=self._growing(middle),
        )

    def _growing(self, keeping: float) -> float | None:
        """Return the rate if batches may grow, from the rate at which they keep their interval.

        None for a continuous system, and where the fixed cost of a batch is hardly known. The same rate where batches
        are no limit.
        """
        posterior = self.evidence.posterior
        if self.evidence.is_starved or self.problem.grows:
            return keeping
        if self.problem.batch_interval == 0 or posterior.fixed_share_sd > self.parameters.max_share_sd:
            return None
        return keeping / (1 - posterior.fixed_share)

    def _invalid(self, result: Result, cause: Cause | None = None) -> Result:
        """Return the result without a valid trial: not measured where other work was the reason.

        The last invalid trial says why, or the last one with that cause.
        """
        invalid = [step.verdict for step in self.steps if step.verdict.word == "invalid"]
        verdicts = [each for each in invalid if cause is None or each.cause == cause]
        return without_valid_trial(result, verdicts[-1] if verdicts else Verdict("invalid", "nothing was read"))

    def _lower_bound(self) -> float:
        """Return the lower end of a one-sided interval around the highest sustained rate.

        Of the trials beside other work the longest one counts: the overloaded ones among them are invalid, so that how
        many were sustained shows nothing.
        """
        top = self.evidence.sustained
        windows = self._highest_windows()
        beside = max((window for window, explained in windows if explained), default=0.0)
        seconds = beside + sum(window for window, explained in windows if not explained)
        return top * math.exp(-Z * self.parameters.typical_noise / math.sqrt(max(seconds, 1.0)))

    def _highest_windows(self) -> list[tuple[float, float]]:
        """Return the windows at the highest sustained rate in seconds, each with the loss that other work explains."""
        measured = [step.measurement for step in self.evidence.sustained_steps]
        top = self.evidence.sustained
        return [(each.planned.window, explainable_loss(each)) for each in measured if each.planned.rate >= 0.999 * top]

    def _confirmed_bound(self, low: float) -> float | None:
        """Return the highest sustained rate; that up to the lower end of its interval where it was beside other work.

        None without one.
        """
        if all(not explained for _, explained in self._highest_windows()):
            return self.evidence.sustained
        rates = [step.measurement.planned.rate for step in self.evidence.sustained_steps]
        return max((rate for rate in rates if rate <= low), default=None)

    def _best_step(self, result: Result) -> Step | None:
        """Return the sustained trial behind the result: at the confirmed rate, else the one of the highest rate."""
        steps = self.evidence.sustained_steps
        at_rate = [step for step in steps if step.measurement.planned.rate == result.confirmed_hz]
        return (at_rate or steps)[-1] if steps else None

    def _limit(self, result: Result) -> str | None:
        """Return the resource that limited the overloaded trial next above the result's rate."""
        held_back = result.status == "lower-bound" and self.evidence.overloaded == math.inf
        held_back &= bool(self.evidence.late_rates)
        if result.reason == "generator" or held_back:
            return "generator"
        rate = result.confirmed_hz or result.low_hz or 0.0
        above = [s for s in self.steps if s.verdict.word == "overloaded" and s.measurement.planned.rate > rate]
        nearest = min(above, key=lambda step: step.measurement.planned.rate, default=None)
        return infer_limit(nearest.verdict.why, nearest.measurement.cpu) if nearest is not None else None


plugin = SearchPlugin(make=TwoCounter, calibrated=True)
