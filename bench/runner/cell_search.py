"""The search of one cell: plans a trial, runs it, stores it, judges it, learns from it, until it has its answer."""

import logging
import math
import time

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis.verdict import judge
from bench.config.load_profile import period_of
from bench.errors import HarnessError, ImpossibleMeasurementError, UsageError
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.model.search_inputs import SearchInputs
from bench.model.trace import TraceEvents
from bench.plugins.environment import RunEnvironment
from bench.runner.backend import Backend, DeployedCell
from bench.runner.cell_plan import CellPlan
from bench.runner.outcome import check_sanity, finish_result, remaining_latency_trials
from bench.runner.progress import Notify, TrialFinished, TrialStarted
from bench.runner.replay import JudgedTrial, judge_trials, resume_search
from bench.search.priors import fixed_share_of, hint_of, noise_of, warm_ups_of
from bench.search.problem import Strategy
from bench.storage.run_folder import RunFolder

logger = logging.getLogger(__name__)

ROUNDING_S = 1e-6
"""By which a trial may miss a whole period of its load."""


class Allowance(Struct, frozen=True):
    """The time that one visit allows a search, and what it was given in earlier visits; times in seconds."""

    budget: float | None = None
    """for all trials of the cell; None: `seconds` more than the trials that the search learns from took"""
    seconds: float = 0.0
    """for new trials"""
    deadline: float = math.inf
    """CLOCK_MONOTONIC seconds, from which on no trial begins"""
    possible: float = 0.0
    """the most that further visits may give; a search that wants no trial even then is finished"""
    ignored: int = 0
    """invalid trials among so many first ones of the journal are not given to the search"""
    first: bool = True
    """whether no visit has ended before; otherwise the trials that there are were planned with `hint_hz`"""
    hint_hz: float | None = None
    latency: bool = True
    """whether the latency trials are due"""


class Answer(Struct, frozen=True):
    """The answer of one visit to a cell."""

    result: Result
    finished: bool = True
    """whether the search wants no further trial, however much time it gets"""
    budget: float = 0.0
    """seconds that the search had for all trials of the cell"""
    hint_hz: float | None = None
    failed: bool = False
    """whether an error ended the visit, and the result is that of an earlier one"""


class CellSearch:
    """One cell under measurement, with the folder that keeps its trials."""

    def __init__(
        self, plan: CellPlan, env: RunEnvironment, folder: RunFolder, notify: Notify, *, allowance: Allowance
    ) -> None:
        self.plan, self._env, self._folder, self._notify = plan, env, folder, notify
        self._allowance = allowance
        self._last: Measurement | None = None
        self._trials = folder.trials(plan.cell)

    def failed_answer(self, earlier: Result) -> Answer:
        """Return the answer of a visit that an error ended: the earlier result, which another visit may improve."""
        finished = earlier.was_ended_by_error  # the cell has met only errors so far
        return Answer(earlier, finished, hint_hz=self._allowance.hint_hz, failed=True)

    def answer(self, backend: Backend) -> Answer:
        """Return the cell's result; the backend deploys the cell where a further trial is due."""
        allowance, generator_hz = self._allowance, backend.generator_hz(self.plan, self._env)
        known = judge_trials(self.plan, self._trials, ignored=allowance.ignored)
        budget = _spent_seconds(known) + allowance.seconds if allowance.budget is None else allowance.budget
        return self._answer(known, self._first_inputs(generator_hz, budget), backend)

    def _answer(self, known: list[JudgedTrial], inputs: SearchInputs, backend: Backend) -> Answer:
        """Return the answer of a search, after the trials that it still wants; store its inputs."""
        search = resume_search(self.plan, inputs, known)
        result = _finish(search, self.plan, known)
        if self._next_trial(search) is not None or self._latency_trials(result):
            with backend.deployed(self.plan, self._env) as deployment:
                kept = deployment.warm_up(self._notify)
                if kept and inputs.hint_hz is None and not known:
                    inputs = replace(inputs, hint_hz=kept)
                    search = resume_search(self.plan, inputs, known)
                try:
                    result = self._search(search, deployment, known, inputs.budget_s)
                    self._measure_latency(result, deployment)
                except ImpossibleMeasurementError:
                    self._folder.set_inputs(self.plan.cell, inputs)  # the trials give this failure again
                    raise
        longer = replace(inputs, budget_s=inputs.budget_s + self._allowance.possible)
        finished = bool(result.precision_reached) or resume_search(self.plan, longer, known).next_trial() is None
        self._folder.set_inputs(self.plan.cell, inputs)
        return Answer(result, finished, inputs.budget_s, inputs.hint_hz)

    def _search(self, search: Strategy, deployment: DeployedCell, known: list[JudgedTrial], budget: float) -> Result:
        """Try rates until the search has its answer or its time is over; add the trials to the known ones."""
        while (planned := self._next_trial(search)) is not None:
            if self._may_become_faster(deployment) and planned.number > 0 and planned.purpose != "warm-up":
                self._warm_up(planned, deployment)
            follows = bool(self.plan.scenario.latency.at)  # trials that need the deployment after the search
            left = math.inf if follows else budget - _spent_seconds(known)
            known.append(self._run_trial(planned, deployment, left))
            search = search.after(*known[-1])
        return _finish(search, self.plan, known)

    def _next_trial(self, search: Strategy) -> PlannedTrial | None:
        """Return the search's next trial with its number in the journal; None when it is finished or time is over."""
        planned = search.next_trial() if time.monotonic() < self._allowance.deadline else None
        return replace(planned, number=len(self._trials)) if planned is not None else None

    def _measure_latency(self, result: Result, deployment: DeployedCell) -> None:
        """Run the latency trials that the scenario asks for; the rate is known even if they fail."""
        try:
            for planned in self._latency_trials(result):
                if self._last is None or not self._last.deployment_reusable:
                    self._warm_up(planned, deployment)
                self._run_trial(planned, deployment, math.inf)
        except (UsageError, ImpossibleMeasurementError):
            raise
        except HarnessError as problem:
            logger.warning("%s: its latency is not measured: %s", self.plan.cell.name, problem)

    def _run_trial(self, planned: PlannedTrial, deployment: DeployedCell, time_left: float) -> JudgedTrial:
        """Run, store, check and judge one trial; the deployment is of use for so many seconds from now on."""
        self._make_ready(deployment)
        planned = _fill_periods(planned, period_of(self.plan.scenario.load))
        self._notify(TrialStarted(planned))
        measurement = deployment.run_trial(planned, self._notify, time_left)
        self._folder.add(self.plan.cell, measurement)  # stored before it is judged
        measurement = self._last = replace(measurement, trace=TraceEvents())  # it would fill the memory
        self._trials.append(measurement)
        check_sanity(measurement, self.plan)
        verdict = judge(measurement, self.plan.rules)
        self._notify(TrialFinished(measurement, verdict))
        return measurement, verdict

    def _may_become_faster(self, deployment: DeployedCell) -> bool:
        """Return True for new processes of which the plugin does not say that they are at full speed."""
        return self._last is None and deployment.is_new and self.plan.framework.capabilities.warm_up_s != 0

    def _warm_up(self, planned: PlannedTrial, deployment: DeployedCell) -> None:
        """Warm up a new deployment at half the next rate; the measurement is neither stored nor given to the search."""
        self._make_ready(deployment)
        half = replace(planned, rate=planned.rate / 2, purpose="warm-up")
        self._notify(TrialStarted(half))
        measurement = self._last = deployment.run_trial(half, self._notify, math.inf)
        self._notify(TrialFinished(measurement, judge(measurement, self.plan.rules)))

    def _make_ready(self, deployment: DeployedCell) -> None:
        """Empty the deployment after an earlier trial; replace it where messages were left in it or a process died."""
        if self._last is not None:
            deployment.make_ready(self._last)
            deployment.warm_up(self._notify)

    def _latency_trials(self, result: Result) -> list[PlannedTrial]:
        return remaining_latency_trials(self.plan, result, self._trials) if self._allowance.latency else []

    def _first_inputs(self, generator_hz: float | None, budget: float) -> SearchInputs:
        bound, allowance = self.plan.hard_bound, self._allowance
        hint, cold = allowance.hint_hz, self.plan.framework.capabilities.warm_up_s != 0
        if allowance.first:
            hint = hint_of(self.plan.cell, self._folder.results(), bound.hz if bound is not None else None)
        return SearchInputs(
            cores=self._env.cores,
            budget_s=budget,
            hint_hz=hint,
            fixed_share=fixed_share_of(self.plan.cell, self._folder.results()),
            noise=noise_of(self.plan.cell, self._folder.results()),
            cold=cold,
            warm_ups=warm_ups_of(self.plan.cell, self._folder.results()) if cold else (),
            ignored=allowance.ignored,
            generator_hz=generator_hz,
        )


def _spent_seconds(known: list[JudgedTrial]) -> float:
    return sum(measurement.seconds for measurement, _ in known)


def _finish(search: Strategy, plan: CellPlan, known: list[JudgedTrial]) -> Result:
    return finish_result(search.result(), plan, (measurement for measurement, _ in known))


def _fill_periods(planned: PlannedTrial, period: float) -> PlannedTrial:
    """Return a trial with whole periods of its load: the rate is the mean of one, and no part of it was sent."""
    rest = (planned.settle + planned.window) % period if period > 0 else 0.0
    return planned if min(rest, period - rest) < ROUNDING_S else replace(planned, window=planned.window + period - rest)
