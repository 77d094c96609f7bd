"""One suite for every installed scaling policy: a plan for all operators, a reason, and the same plan again."""

import pytest

from bench.elasticity.dataflow import chain
from bench.elasticity.policy_run import run_policy
from bench.elasticity.simulated_job import JobSimulation, SimulatedJob, SimulatedOperator
from bench.errors import UsageError
from bench.plugins import registry

FLOW = chain("source", "map", "reduce")
JOB = SimulatedJob(FLOW, {"map": SimulatedOperator(10.0), "reduce": SimulatedOperator(20.0)}, rescale_s=5.0, noise=0.05)
LOAD = [{"source": rate} for rate in (5.0, 50.0, 50.0, 0.0, 0.0, 100.0) for _ in range(5)]
POLICIES = pytest.mark.parametrize("name", registry.names("policies"))


def follow(name):
    policy = registry.make_policy(name, {}, FLOW)
    return run_policy(JobSimulation(JOB, {"map": 2, "reduce": 1}), policy, LOAD, interval=60)


@POLICIES
def test_a_plan_has_instances_of_every_operator_and_a_reason(name):
    """Also without any load, during a pause, and with a backlog."""
    for decision in follow(name):
        assert set(decision.plan.parallelism) == {"map", "reduce"}
        assert min(decision.plan.parallelism.values()) >= 1
        assert decision.plan.reason.strip()


@POLICIES
def test_the_same_samples_give_the_same_plan(name):
    """A policy holds no state: it can be asked again, and a run of it repeated."""
    decisions = follow(name)
    assert follow(name) == decisions
    policy, samples = registry.make_policy(name, {}, FLOW), [decision.sample for decision in decisions]
    for number, decision in enumerate(decisions[:-1], 1):  # the last one changes nothing
        for _ in range(2):
            assert policy.decide(samples[:number], decision.running) == decision.plan


@POLICIES
def test_unknown_settings_are_refused(name):
    """The line names the setting."""
    with pytest.raises(UsageError, match=rf"settings\.{name}\.speed"):
        registry.make_policy(name, {name: {"speed": 3}}, FLOW)
