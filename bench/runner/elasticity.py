"""The procedure of a scenario of kind elasticity: policies follow one load on running systems, one after the other."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from bench.config.elasticity import Elasticity
from bench.config.load_profile import profile_over_time
from bench.elasticity.live_comparison import PolicyResult
from bench.elasticity.live_run import FORMAT, LivePolicyRun, LiveRecord, policy_runs
from bench.elasticity.live_samples import FLOW, OPERATOR, Offered, WorkerMeter
from bench.elasticity.policy import Plan, Policy
from bench.elasticity.policy_run import Decision, sample_profile, without_change
from bench.elasticity.samples import Sample
from bench.errors import HarnessError, PluginError, UsageError
from bench.model.measurement import Measurement, PlannedTrial
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import ElasticFramework, RunningFramework
from bench.runner.cell_plan import CellPlan
from bench.runner.deployment import deployed
from bench.runner.progress import CellStarted, IntervalEnded, Notify, PolicyEnded, TrialStarted
from bench.runner.trial import run_trial
from bench.runner.trial_state import TrialState
from bench.storage.json_lines import read_lines
from bench.storage.run_folder import ELASTICITY, RunFolder, read_trials

logger = logging.getLogger(__name__)

START_TIMEOUT_S = 120.0
"""For the workers to begin with; on a busy machine they take their time."""
IN_FLIGHT_S = 0.5
"""A message that has been due for longer, and is not processed, waits."""


def follow_load(plans: Sequence[CellPlan], env: RunEnvironment, folder: RunFolder, notify: Notify) -> None:
    """Let each policy follow the load on each system, the same messages for all of them.

    1. Deploy the system, and change it to the workers to begin with.
    2. Send the load, as one long trial. At the end of each interval, take a sample of what the workers have counted,
       ask the policy, store both, and begin to change the workers.
    3. When the load is over and messages wait, change to the most workers, so that they are processed soon. Count what
       was lost.
    4. Store the trial, and the end of the policy's run.

    A system whose workers cannot come and go is recorded with its reason. A policy whose run is complete is not run
    again; one that fails does not end the run.
    """
    earlier = {(one.system, one.policy): one for one in read_policy_runs(folder.folder)}
    runs = [(plan, name) for plan in plans for name in _elasticity(plan).policies]
    for number, (plan, name) in enumerate(runs, 1):
        before = earlier.get((plan.cell.system, name))
        if before is not None and before.is_complete:
            continue
        attempt = before.attempt + 1 if before is not None else 1
        record = LiveRecord(FORMAT, plan.cell.system, name, attempt, "end")
        notify(CellStarted(plan.cell, number, len(runs), done=number - 1, policy=name))
        end, measurement = _follow(plan, record, env, folder, notify)
        folder.add_elasticity(end)
        notify(PolicyEnded(end, measurement))


def read_policy_runs(folder: Path) -> list[LivePolicyRun]:
    """Return what policies did in a run so far; UsageError if elasticity.jsonl cannot be read."""
    return policy_runs(read_lines(folder / ELASTICITY, LiveRecord))


def read_policy_results(folder: Path) -> list[PolicyResult]:
    """Return what policies did in a run so far, each with its measurement; UsageError if a file cannot be read."""
    trials = {(entry.cell.system, entry.measurement.planned.number): entry.measurement for entry in read_trials(folder)}
    return [
        PolicyResult(one, None if one.end is None or one.end.trial is None else trials.get((one.system, one.end.trial)))
        for one in read_policy_runs(folder)
    ]


def interval_loads(elasticity: Elasticity) -> list[float]:
    """Return the mean messages/s of each interval; a last one that the load does not fill is left out."""
    profile = profile_over_time(elasticity.load)
    highest = max(rate for _, rate in profile)
    return [round(rate, 6) for rate in sample_profile(profile, float(elasticity.interval), highest)]


def _elasticity(plan: CellPlan) -> Elasticity:
    """Return the part of a plan's scenario that makes it one of kind elasticity."""
    if plan.scenario.elasticity is None:
        raise ValueError(f"{plan.scenario.name}: is of kind {plan.scenario.kind}")
    return plan.scenario.elasticity


def _follow(
    plan: CellPlan, record: LiveRecord, env: RunEnvironment, folder: RunFolder, notify: Notify
) -> tuple[LiveRecord, Measurement | None]:
    """Return the end of one policy's run, whatever becomes of it, and the measurement of a run that ended."""
    if plan.unsupported_reason is not None:
        return replace(record, what="unsupported", reason=plan.unsupported_reason), None

    def keep(decision: Decision) -> None:
        folder.add_elasticity(replace(record, what="interval", decision=decision))
        notify(IntervalEnded(decision))

    try:
        measurement = _run_policy(plan, record.policy, len(folder.trials(plan.cell)), env, (keep, notify))
        folder.add(plan.cell, measurement)
    except UsageError:
        raise
    except HarnessError as problem:
        logger.warning("%s with %s failed: %s", record.system, record.policy, problem)
        return replace(record, reason=str(problem).splitlines()[0]), None
    why = "" if measurement.ended == "complete" else f"{measurement.ended}: {measurement.note}"
    return replace(record, trial=measurement.planned.number, reason=why), measurement


def _run_policy(
    plan: CellPlan, name: str, number: int, env: RunEnvironment, listeners: tuple[Callable[[Decision], None], Notify]
) -> Measurement:
    """Return the measurement of one policy that follows the load, as trial `number` of the cell."""
    elasticity, (keep, notify) = _elasticity(plan), listeners
    loads, policy = interval_loads(elasticity), registry.make_policy(name, plan.scenario.settings, FLOW)
    profile = profile_over_time(elasticity.load)
    mean = sum(length * rate for length, rate in profile) / elasticity.seconds
    planned = PlannedTrial(number, mean, 0.0, len(loads) * float(elasticity.interval), "elasticity")
    with deployed(plan, env) as deployment:
        elastic = _start_workers(deployment.framework, plan, elasticity.start)
        follower = _Follower(elastic, policy, elasticity, loads, keep)
        notify(TrialStarted(planned))
        return run_trial(deployment, planned, notify, control=follower)


def _start_workers(framework: RunningFramework, plan: CellPlan, workers: int) -> ElasticFramework:
    """Return a running framework once it has the workers to begin with; PluginError if it does not get them in time."""
    if not isinstance(framework, ElasticFramework):
        raise PluginError(plan.cell.framework, "rescale", "it says that it is elastic, and is no ElasticFramework")
    framework.rescale(workers)
    deadline = time.monotonic() + START_TIMEOUT_S
    while (running := len(framework.workers())) != workers:
        if time.monotonic() > deadline:
            why = f"{running} workers instead of {workers} after {START_TIMEOUT_S:g} s"
            raise PluginError(plan.cell.framework, "rescale", why)
        framework.poll()
        time.sleep(0.1)
    return framework


class _Follower:
    """The control of a trial: it asks a policy at the end of each interval, and changes the workers."""

    def __init__(
        self,
        elastic: ElasticFramework,
        policy: Policy,
        elasticity: Elasticity,
        loads: Sequence[float],
        keep: Callable[[Decision], None],
    ) -> None:
        self._elastic, self._policy, self._keep = elastic, policy, keep
        self._loads, self._interval = loads, float(elasticity.interval)
        self._most, self._wanted = min(elasticity.most, elastic.max_workers), elasticity.start
        self._meter, self._samples, self._ended = WorkerMeter(elastic.workers()), list[Sample](), 0

    def __call__(self, state: TrialState, now: float) -> None:
        """End the interval that is over; `now` is in seconds since the first due time."""
        if self._ended == len(self._loads) or now < (self._ended + 1) * self._interval:
            return
        rate, self._ended = self._loads[self._ended], self._ended + 1
        workers = self._elastic.workers()
        waiting = max(0, state.schedule.count(now - IN_FLIGHT_S) - state.processed)
        at, seconds = self._ended * self._interval, self._interval
        sample = self._meter.sample(workers, Offered(rate, waiting), at=at, seconds=seconds)
        plan, wanted = self._plan(sample, len(workers)), {OPERATOR: self._wanted}
        is_last = self._ended == len(self._loads)
        self._keep(Decision(sample, wanted, without_change(plan, wanted) if is_last else plan))
        if not is_last:
            self._change(plan.parallelism[OPERATOR])
        elif waiting:
            self._change(self._most)

    def _plan(self, sample: Sample, running: int) -> Plan:
        """Return what the policy wants, within the limits; it sees only intervals with those that it asked for."""
        wanted = self._wanted
        if running != wanted:
            return Plan({OPERATOR: wanted}, f"the change to {wanted} workers is under way, {running} take messages")
        self._samples.append(sample)
        plan = self._policy.decide(self._samples, {OPERATOR: wanted})
        asked = plan.parallelism[OPERATOR]
        within = max(1, min(self._most, asked))
        if asked == within:
            return Plan({OPERATOR: asked}, plan.reason)
        return Plan({OPERATOR: within}, f"{plan.reason}; {asked} asked for, {self._most} are the most")

    def _change(self, workers: int) -> None:
        if workers != self._wanted:
            self._wanted = workers
            self._elastic.rescale(workers)
