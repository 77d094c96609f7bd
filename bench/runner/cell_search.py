"""The search of one cell: plans a trial, runs it, stores it, judges it, learns from it, until it has its answer."""

import logging

from msgspec.structs import replace

from bench.analysis.verdict import Verdict, judge
from bench.errors import HarnessError, ImpossibleMeasurementError, UsageError
from bench.model.measurement import Measurement, PlannedTrial, Result
from bench.model.search_inputs import SearchInputs
from bench.plugins.environment import RunEnvironment
from bench.runner.cell_plan import CellPlan
from bench.runner.deployment import Deployment, deployed
from bench.runner.outcome import check_sanity, finish_result, remaining_latency_trials
from bench.runner.progress import Notify, TrialFinished, TrialStarted
from bench.runner.replay import replay_trials
from bench.runner.trial import run_trial
from bench.search.priors import hint_of
from bench.search.problem import Strategy
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
        inputs = self._inputs(generator_hz)
        try:
            result = self._answer(self._resume(inputs))
        except ImpossibleMeasurementError:  # the trials give this failure again; any other one is not of the trials
            self._folder.set_inputs(self.plan.cell, inputs)
            raise
        self._folder.set_inputs(self.plan.cell, inputs)
        return result

    def _answer(self, search: Strategy) -> Result:
        """Return the result of a search, after the trials that it still wants."""
        result = finish_result(search.result(), self.plan)
        if search.next_trial() is None and not self._latency_trials(result):
            return result
        with deployed(self.plan, self._env) as deployment:
            result = self._search(search, deployment)
            self._measure_latency(result, deployment)
        return result

    def _resume(self, inputs: SearchInputs) -> Strategy:
        """Return the search, which knows the trials that the journal has of the cell."""
        trials, several_senders = self._folder.trials(self.plan.cell), self._env.site.load is not None
        return replay_trials(self.plan, inputs, trials, several_senders=several_senders)

    def _search(self, search: Strategy, deployment: Deployment) -> Result:
        """Try rates until the search has its answer."""
        while (planned := search.next_trial()) is not None:
            if self._last is None and planned.number > 0 and planned.purpose != "warm-up":
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
        if self._last is None:
            return
        if self._last.deployment_reusable:
            deployment.source.reset()
        else:
            deployment.redeploy()

    def _latency_trials(self, result: Result) -> list[PlannedTrial]:
        return remaining_latency_trials(self.plan, result, self._folder.trials(self.plan.cell))

    def _check(self, measurement: Measurement) -> None:
        check_sanity(measurement, self.plan, several_senders=self._env.site.load is not None)

    def _inputs(self, generator_hz: float | None) -> SearchInputs:
        plan, bound = self.plan, self.plan.hard_bound
        return SearchInputs(
            cores=self._env.cores,
            budget_s=float(plan.scenario.search.budget),
            hint_hz=hint_of(plan.cell, self._folder.results(), bound.hz if bound is not None else None),
            generator_hz=generator_hz,
        )
