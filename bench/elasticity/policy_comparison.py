"""Several policies that follow one load on one simulated job, side by side.

The job is one operator whose instances are workers with the true rate that advice found. All policies begin with the
workers that are enough for the highest rate, see the same intervals, and pause the job for as long with a change.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bench.elasticity.advice import Advice, Question
from bench.elasticity.live_samples import FLOW, OPERATOR, SOURCE
from bench.elasticity.parallelism import ROUNDING_SLACK
from bench.elasticity.policy import Policy
from bench.elasticity.policy_run import Decision, Score, run_policy, sample_profile, score_run
from bench.elasticity.simulated_job import JobSimulation, SimulatedJob, SimulatedOperator
from bench.errors import UsageError
from bench.units import seconds_text

MAX_INTERVALS = 2000


class Following(Struct, frozen=True):
    """The load that all policies follow, and the simulated job; times in seconds."""

    system: str
    start: int
    """workers at the beginning"""
    worker_hz: float
    """true rate of a worker in messages/s, by the lower end of its interval"""
    interval: float
    pause: float
    """after a change, in which nothing is processed"""
    load_hz: list[float]
    """messages/s of each interval"""


class PolicyRun(Struct, frozen=True):
    """The decisions of a policy about the load, and their score."""

    policy: str
    score: Score
    decisions: list[Decision]


class PolicyComparison(Struct, frozen=True):
    """The runs of all policies, the cheapest first."""

    following: Following
    runs: list[PolicyRun]


def plan_following(
    advice: Sequence[Advice],
    question: Question,
    profile: Sequence[tuple[float, float]],
    *,
    interval: float,
    pause: float,
) -> Following:
    """Return the load for the cheapest system of which it is known how many workers are enough.

    Args:
        advice: For the highest rate, the cheapest first.
        question: The highest rate.
        profile: Parts of (seconds, rate); its highest rate is scaled to that of the question.
        interval: Seconds between two decisions.
        pause: Seconds for which a change stops the system.

    Raises:
        UsageError: There is no such system, or the profile has too many intervals or none.
    """
    if interval <= 0:
        raise UsageError("--interval: found 0 ms; allowed: more than that")
    count = int(sum(seconds for seconds, _ in profile) / interval + ROUNDING_SLACK)
    if not 0 < count <= MAX_INTERVALS:
        raise UsageError(
            f"--load: has {count} intervals of {seconds_text(interval)}; allowed: 1 to {MAX_INTERVALS},"
            " change --interval"
        )
    load = sample_profile(profile, interval, question.rate_hz)
    for each in advice:
        workers, measured = each.workers.enough, each.measured
        if workers is not None and measured is not None and measured.setting and each.low_hz is not None:
            return Following(each.system, workers, each.low_hz / measured.workers, interval, pause, load)
    raise UsageError("--load: of no system it is known how many workers are enough for the highest rate")


def compare_policies(following: Following, policies: Mapping[str, Policy]) -> PolicyComparison:
    """Return what policies for FLOW, by name, do with a load."""
    job = SimulatedJob(
        FLOW, {OPERATOR: SimulatedOperator(following.worker_hz)}, rescale_s=following.pause, full_queue=0.0
    )
    load, start = [{SOURCE: rate} for rate in following.load_hz], {OPERATOR: following.start}
    runs = list[PolicyRun]()
    for name, policy in policies.items():
        decisions = run_policy(JobSimulation(job, start), policy, load, interval=following.interval)
        runs.append(PolicyRun(name, score_run(decisions), decisions))
    return PolicyComparison(following, sorted(runs, key=lambda run: (run.score.instance_s, run.policy)))
