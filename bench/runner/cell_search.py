"""The search of one cell: plans a trial, runs it, stores it, judges it, learns from it, until it has its answer."""

import logging

from msgspec.structs import replace

from bench.analysis.verdict import Verdict, judge
from bench.errors import HarnessError, ImpossibleMeasurementError, UsageError
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.runner.cell_plan import CellPlan
from bench.runner.deployment import Deployment, deployed
from bench.runner.outcome import check_sanity, finish_result, remaining_latency_trials
from bench.runner.progress import Notify, TrialFinished, TrialStarted
from bench.runner.trial import run_trial
from bench.runner.warm_up import warm_up_session
from bench.search.priors import hint_of
from bench.search.problem import SearchProblem, Strategy
from bench.storage.run_folder import RunFolder

logger = logging.getLogger(__name__)


class CellSearch:
    """One cell under measurement, with the folder that keeps its trials."""

    def __init__(self, plan: CellPlan, env: RunEnvironment, folder: RunFolder, notify: Notify) -> None:
        self.plan, self._env, self._folder, self._notify = plan, env, folder, notify
        self._last: Measurement | None = None

    def result(self, generator_hz: float | None) -> Result:
        """Return the cell's result; deploys nothing where the journal has every trial already.

        Args:
            generator_hz: what the load generator can do by itself, in messages/s; None where it is not known.
        """
        search = self._resume(generator_hz)
        result = finish_result(search.result(), self.plan)
        if search.next_trial() is None and not self._latency_trials(result):
            return result
        with deployed(self.plan, self._env) as deployment:
            warm_up_session(deployment, self._notify)
            result = self._search(search, deployment)
            self._measure_latency(result, deployment)
        return result

    def _resume(self, generator_hz: float | None) -> Strategy:
        """Return the search, which knows the trials that the journal has of the cell."""
        search = registry.strategy(self.plan.scenario.search.strategy, self._problem(generator_hz))
        for measurement in self._folder.trials(self.plan.cell):
            self._check(measurement)
            if measurement.planned.purpose != "latency":
                search = search.after(measurement, judge(measurement, self.plan.rules))
        return search

    def _search(self, search: Strategy, deployment: Deployment) -> Result:
        """Try rates until the search has its answer."""
        while (planned := search.next_trial()) is not None:
            if self._last is None and planned.number > 0 and planned.purpose != "warm-up" and deployment.warm_s == 0:
                self._warm_up(planned, deployment)
            search = search.after(*self._run_trial(planned, deployment))
        return finish_result(search.result(), self.plan)

    def _measure_latency(self, result: Result, deployment: Deployment) -> None:
        """Run the latency trials that the scenario asks for; the rate is known even if they fail."""
        try:
            for planned in self._latency_trials(result):
                if self._last is None or not self._last.deployment_reusable:
                    self._warm_up(planned, deployment)
                self._run_trial(planned, deployment)
        except (UsageError, ImpossibleMeasurementError):
            raise
        except HarnessError as problem:
            logger.warning("%s: its latency is not measured: %s", self.plan.cell.name, problem)

    def _run_trial(self, planned: PlannedTrial, deployment: Deployment) -> tuple[Measurement, Verdict]:
        """Run, store, check and judge one trial."""
        self._make_ready(deployment)
        self._notify(TrialStarted(planned))
        measurement = self._last = run_trial(deployment, planned, self._notify)
        self._folder.add(self.plan.cell, measurement)  # stored before it is judged
        self._check(measurement)
        verdict = judge(measurement, self.plan.rules)
        self._notify(TrialFinished(measurement, verdict))
        return measurement, verdict

    def _warm_up(self, planned: PlannedTrial, deployment: Deployment) -> None:
        """Warm up a new deployment at half the next rate; the measurement is neither stored nor given to the search."""
        self._make_ready(deployment)
        half = replace(planned, rate=planned.rate / 2, purpose="warm-up")
        self._notify(TrialStarted(half))
        measurement = self._last = run_trial(deployment, half, self._notify)
        self._notify(TrialFinished(measurement, judge(measurement, self.plan.rules)))

    def _make_ready(self, deployment: Deployment) -> None:
        """Empty the deployment after an earlier trial; replace it where messages were left in it or a process died."""
        if self._last is not None:
            deployment.make_ready(self._last)
            warm_up_session(deployment, self._notify)

    def _latency_trials(self, result: Result) -> list[PlannedTrial]:
        return remaining_latency_trials(self.plan, result, self._folder.trials(self.plan.cell))

    def _check(self, measurement: Measurement) -> None:
        check_sanity(measurement, self.plan, several_senders=self._env.site.load is not None)

    def _problem(self, generator_hz: float | None) -> SearchProblem:
        plan, scenario = self.plan, self.plan.scenario
        bound = plan.hard_bound
        bound_hz = bound.hz if bound is not None else None
        return SearchProblem(
            plan.cell,
            scenario.search,
            scenario.timing,
            batch_interval=plan.batch_interval,
            bound_hz=bound_hz,
            bound=bound.name if bound is not None else "cpu",
            hint_hz=hint_of(plan.cell, self._folder.results(), bound_hz),
            generator_hz=generator_hz,
            objectives=scenario.objectives,
        )
