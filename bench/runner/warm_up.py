"""The warm-up of a framework's new processes: once a session, before its first trial."""

from msgspec.structs import replace

from bench.analysis.verdict import Verdict, judge
from bench.model.measurement import PlannedTrial
from bench.runner.deployment import Deployment
from bench.runner.progress import Notify, TrialFinished, TrialStarted
from bench.runner.trial import run_trial

FIRST_HZ, FIRST_BYTES_HZ = 200.0, 20e6
"""Messages/s and bytes/s at which it begins, whichever are fewer."""
GROWTH = 2.0
"""From one step to the next, as long as the framework keeps up: after an overload it must be emptied or replaced."""
MAX_LOAD = 0.8
"""Highest rate, as a share of what a step has shown to be the capacity, or of the hard bound."""
STEP_S, STEP_BATCHES = 4.0, 7.2
"""Seconds of a step, and its batch intervals, whichever take longer: six batches are completed after the first one."""
MAX_STEPS = 20
FIRST_NUMBER = 60_000
"""Of its trials, which no trial of a search has."""


def warm_up_session(deployment: Deployment, notify: Notify) -> float | None:
    """Load a framework whose processes are new for as long as its plugin says that they become faster.

    The rate grows while it keeps up. Nothing is stored. The deployment is ready for a trial afterwards. Processes that
    are warm are left alone.

    Returns:
        The messages/s that the framework kept up with in the last step that shows it; None without such a step.
    """
    kept: float | None = None
    if not deployment.is_warm:
        deployment.env.note(f"warming up {deployment.plan.cell.framework}")
    plan, step = deployment.plan, PlannedTrial(FIRST_NUMBER, _first_rate(deployment), 0.0, 0.0, "warm-up")
    needed, shortest = plan.warm_up_s, max(STEP_S, STEP_BATCHES * plan.batch_interval)
    for number in range(MAX_STEPS):
        left = needed - deployment.warm_s
        if left <= 0:
            break
        settle = plan.batch_interval
        window = max(min(left, shortest), shortest / 2) - settle
        step = replace(step, number=FIRST_NUMBER + number, settle=settle, window=window)
        notify(TrialStarted(step))
        measurement = run_trial(deployment, step, notify)
        verdict = judge(measurement, plan.rules)
        notify(TrialFinished(measurement, verdict))
        if verdict.word != "invalid":
            kept = step.rate * (1 - verdict.loss)
        deployment.make_ready(measurement)
        step = replace(step, rate=_next_rate(step.rate, verdict, deployment))
    return kept


def _first_rate(deployment: Deployment) -> float:
    cell = deployment.plan.cell
    return min(FIRST_HZ, FIRST_BYTES_HZ / cell.message_bytes, _highest(deployment))


def _next_rate(rate: float, verdict: Verdict, deployment: Deployment) -> float:
    factor = GROWTH if verdict.word == "sustained" else MAX_LOAD * (1 - verdict.loss)
    return min(factor * rate, _highest(deployment))


def _highest(deployment: Deployment) -> float:
    bound, highest = deployment.plan.hard_bound, float(deployment.plan.scenario.search.highest)
    return highest if bound is None else min(highest, MAX_LOAD * bound.hz)
