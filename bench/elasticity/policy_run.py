"""A policy that follows a load on a simulated job, and a score of how well it does."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from bench.elasticity.parallelism import ROUNDING_SLACK
from bench.elasticity.policy import Plan, Policy
from bench.elasticity.samples import Parallelism, Sample
from bench.elasticity.simulated_job import JobSimulation

MET = 0.99
"""Share of the offered records that an interval must take to meet its load."""

Load = Sequence[Mapping[str, float]]
"""Of each interval: records/s by source."""


class Decision(Struct, frozen=True):
    """An interval, and what a policy decided at its end."""

    sample: Sample
    running: Parallelism
    plan: Plan

    @property
    def instances(self) -> int:
        """Return the instances of all operators that ran in the interval."""
        return sum(self.running.values())

    @property
    def is_change(self) -> bool:
        """Return True if the policy changed anything."""
        return dict(self.plan.parallelism) != dict(self.running)


class Score(Struct, frozen=True):
    """The outcome of a policy that followed a load; times in seconds."""

    under_target_s: float
    """in which the job took less than its load"""
    max_backlog: float
    """records that waited at the sources"""
    max_wait_s: float
    """that the oldest of them had waited about: backlog divided by the rate taken; infinite where nothing was taken"""
    instance_s: float
    """instances x seconds: the cost"""
    changes: int
    most_instances: int
    settled_s: float | None
    """from the last change of the load until the last change of the instances; None if the load was not met at the end
    """


def run_policy(simulation: JobSimulation, policy: Policy, load: Load, *, interval: float) -> list[Decision]:
    """Return what a policy decides while a simulated job has a load; at its end nothing is changed any more.

    Args:
        simulation: The job, which runs on from where it is.
        policy: The policy, which is asked at the end of each interval.
        load: Records/s of each interval.
        interval: Seconds of an interval.
    """
    samples, decisions = list[Sample](), list[Decision]()
    for number, offered in enumerate(load, 1):
        running = dict(simulation.parallelism)
        samples.append(simulation.advance(interval, offered))
        plan = policy.decide(samples, running)
        decisions.append(Decision(samples[-1], running, plan if number < len(load) else without_change(plan, running)))
        simulation.rescale(decisions[-1].plan.parallelism)
    return decisions


def without_change(plan: Plan, running: Parallelism) -> Plan:
    """Return a plan of the last interval, which changes nothing: no load is left that would need it."""
    return plan if dict(plan.parallelism) == dict(running) else Plan(running, f"{plan.reason}; the load has ended")


def score_run(decisions: Sequence[Decision]) -> Score:
    """Return the score of a run of at least one interval."""
    samples = [decision.sample for decision in decisions]
    changed_at = [decision.sample.at for decision in decisions if decision.is_change]
    loads = [sample.offered for sample in samples]
    new_load = max((s.begin for s, a, b in zip(samples[1:], loads, loads[1:], strict=False) if a != b), default=0.0)
    backlogs = [sum(sample.backlog.values()) for sample in samples]
    return Score(
        under_target_s=sum(sample.seconds for sample in samples if not is_met(sample)),
        max_backlog=max(backlogs),
        max_wait_s=max(_wait_s(sample) for sample in samples),
        instance_s=sum(decision.instances * decision.sample.seconds for decision in decisions),
        changes=len(changed_at),
        most_instances=max(decision.instances for decision in decisions),
        settled_s=max(0.0, max(changed_at, default=0.0) - new_load) if is_met(samples[-1]) else None,
    )


def is_met(sample: Sample) -> bool:
    """Return True if an interval took what was offered."""
    return sum(sample.taken.values()) >= MET * sum(sample.offered.values())


def _wait_s(sample: Sample) -> float:
    backlog, taken = sum(sample.backlog.values()), sum(sample.taken.values())
    if taken > 0:
        return backlog / taken
    return float("inf") if backlog else 0.0


def sample_profile(profile: Sequence[tuple[float, float]], interval: float, peak_hz: float) -> list[float]:
    """Return the mean records/s of each interval of a load profile; a last interval that it does not fill is left out.

    Args:
        profile: Parts of (seconds, rate), one after the other; rates in any unit.
        interval: Seconds of an interval.
        peak_hz: Records/s to which the highest rate of the profile is scaled.
    """
    lengths, rates = (np.array(column, dtype=np.float64) for column in zip(*profile, strict=True))
    ends = np.concatenate(([0.0], np.cumsum(lengths)))
    total = np.concatenate(([0.0], np.cumsum(lengths * rates * peak_hz / rates.max())))
    at = np.arange(int(ends[-1] / interval + ROUNDING_SLACK) + 1) * interval
    means: list[float] = (np.diff(np.interp(at, ends, total)) / interval).tolist()
    return means
