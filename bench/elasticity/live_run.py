"""Records of policies on running systems (elasticity.jsonl), and the score of each of them."""

import math
from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import Literal

from msgspec import Struct

from bench.elasticity.live_samples import OPERATOR, SOURCE
from bench.elasticity.parallelism import round_up
from bench.elasticity.policy_run import Decision, Score, is_met, score_run
from bench.elasticity.samples import true_rates

FORMAT = 2


class LiveRecord(Struct, frozen=True):
    """One line: an interval of a policy with its decision, or the end of its run."""

    format: int
    system: str
    policy: str
    attempt: int
    """from 1; another one begins where a run was interrupted before the policy's end"""
    what: Literal["interval", "end", "unsupported"]
    decision: Decision | None = None
    """of an interval"""
    trial: int | None = None
    """of an end: the number of the trial in trials.jsonl that has the counters; None where there is none"""
    reason: str = ""
    """why it failed, or why the system cannot change its workers; empty where it followed the load until its end"""


class LivePolicyRun(Struct, frozen=True):
    """The last attempt of one policy on one system."""

    system: str
    policy: str
    attempt: int
    decisions: list[Decision]
    end: LiveRecord | None
    """None where it was interrupted"""

    @property
    def is_complete(self) -> bool:
        """Return True if it followed the load until its end."""
        return self.end is not None and self.end.what == "end" and not self.end.reason

    @property
    def is_unsupported(self) -> bool:
        """Return True if the workers of the system cannot come and go."""
        return self.end is not None and self.end.what == "unsupported"


class LiveScore(Struct, frozen=True):
    """The outcome of a policy on a running system; times in seconds."""

    score: Score
    overshoot: int
    """the most workers that a change added beyond those that its load needs by their true rate"""
    steps: int
    """the most changes after one change of the load"""
    settle_s: float | None
    """the longest time from a change of the load to the last change of the workers before the next one; None where one
    of these loads was not met at its end"""


def policy_runs(records: Sequence[LiveRecord]) -> list[LivePolicyRun]:
    """Return the last attempt of each policy on each system, in the order in which they began."""
    by_run = dict[tuple[str, str], list[LiveRecord]]()
    for record in records:
        by_run.setdefault((record.system, record.policy), []).append(record)
    return [_last_attempt(system, policy, own) for (system, policy), own in by_run.items()]


def _last_attempt(system: str, policy: str, records: Sequence[LiveRecord]) -> LivePolicyRun:
    last = [record for record in records if record.attempt == records[-1].attempt]
    decisions = [record.decision for record in last if record.decision is not None]
    end = next((one for one in last if one.what != "interval"), None)
    return LivePolicyRun(system, policy, last[0].attempt, decisions, end)


def score_live(decisions: Sequence[Decision]) -> LiveScore:
    """Return the score of a run of at least one interval."""
    loads = split_by_load(decisions)
    settled = [_settle_s(load) for load in loads]
    return LiveScore(
        score_run(decisions),
        overshoot=_overshoot(decisions),
        steps=max(sum(one.is_change for one in load) for load in loads),
        settle_s=None if None in settled else max(each for each in settled if each is not None),
    )


def split_by_load(decisions: Sequence[Decision]) -> list[list[Decision]]:
    """Return the intervals of each load, which is one rate for one or more intervals."""
    return [list(group) for _, group in groupby(decisions, key=lambda one: one.sample.offered[SOURCE])]


def worker_rate(decisions: Sequence[Decision]) -> float | None:
    """Return the true rate of one worker in messages/s, the median of all intervals; None if nothing was processed."""
    rates = worker_rates(decisions)
    return median(rates) if rates else None


def worker_rates(decisions: Sequence[Decision]) -> list[float]:
    """Return the true rate of one worker in messages/s of each interval in which anything was processed."""
    found = [true_rates(one.sample.operators[OPERATOR]) for one in decisions]
    return [each.processing / each.instances for each in found if each is not None]


def needed_workers(decision: Decision, worker_hz: float) -> int:
    """Return the fewest workers of that true rate that keep up with the load of an interval."""
    return max(1, round_up(decision.sample.offered[SOURCE] / worker_hz))


def _settle_s(load: Sequence[Decision]) -> float | None:
    """Return the seconds from the beginning of a load to the last change of the workers; None if it is not met then."""
    changed = [one.sample.at for one in load if one.is_change]
    return max(changed, default=load[0].sample.begin) - load[0].sample.begin if is_met(load[-1].sample) else None


def _overshoot(decisions: Sequence[Decision]) -> int:
    worker_hz = worker_rate(decisions)
    if worker_hz is None or math.isinf(worker_hz):
        return 0
    added = [one for one in decisions if sum(one.plan.parallelism.values()) > one.instances]
    surplus = [sum(one.plan.parallelism.values()) - needed_workers(one, worker_hz) for one in added]
    return max(0, *surplus) if surplus else 0
