"""Policies on a running system, made up: one that follows the load at once, and one that never does."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from sample_runs import make_measurement, open_run_folder

from bench.config.elasticity import Elasticity, LoadPart
from bench.config.scenario import Grid, Scenario
from bench.elasticity.live_comparison import PolicyResult
from bench.elasticity.live_run import FORMAT, LivePolicyRun, LiveRecord
from bench.elasticity.live_samples import OPERATOR, SOURCE
from bench.elasticity.policy import Plan
from bench.elasticity.policy_run import Decision
from bench.elasticity.samples import InstanceSample, Sample
from bench.model.cell import Cell
from bench.model.message_sizes import MessageSize
from bench.units import Rate, Seconds
from reports.data.policy_runs import ElasticSystem

CELL = Cell("engine", "source", 1000, 0.05)


def make_decision(at: float, offered: float, running: int, planned: int) -> Decision:
    """Return an interval of 5 s of workers that take 10 messages/s at most."""
    instances = (InstanceSample(50.0, 50.0, 5.0),) * running
    taken = min(offered, 10.0 * running)
    sample = Sample(at, 5.0, {SOURCE: offered}, {SOURCE: taken}, {OPERATOR: instances}, {SOURCE: 5 * (offered - taken)})
    return Decision(sample, {OPERATOR: running}, Plan({OPERATOR: planned}, "<b>because</b>"))


def make_policy(name: str, *decisions: Decision, lost: int = 0, failure: str = "") -> PolicyResult:
    """Return a run, complete unless it failed."""
    run = LivePolicyRun(
        "engine/source", name, 1, list(decisions), LiveRecord(FORMAT, "engine/source", name, 1, "end", reason=failure)
    )
    return PolicyResult(run, replace(make_measurement(0, 10.0, 20.0), lost=lost, duplicated=0, processed_again=7))


QUICK_ONE = make_policy("quick", make_decision(5, 30.0, 1, 3), make_decision(10, 30.0, 3, 3))
SLOW_ONE = make_policy("slow", make_decision(5, 30.0, 1, 1), make_decision(10, 30.0, 1, 1), lost=4)
BOTH = ElasticSystem("engine/source", (SLOW_ONE, QUICK_ONE))
SCENARIO = Scenario(
    name="tiny",
    systems=("engine/source",),
    grid=Grid((MessageSize(1000),), (Seconds(0.05),)),
    kind="elasticity",
    elasticity=Elasticity((LoadPart(Seconds(10), Rate(30)),), ("slow", "quick")),
)


def make_policy_run(
    folder: Path, scenario: Scenario = SCENARIO, policies: Sequence[PolicyResult] = (SLOW_ONE, QUICK_ONE)
) -> Path:
    """Return the folder of a finished run in which policies did this."""
    with open_run_folder(folder, scenario) as store:
        for number, policy in enumerate(policies):
            assert policy.run.end is not None
            end = replace(policy.run.end, system=policy.run.system, trial=number)
            for decision in policy.run.decisions:
                store.add_elasticity(replace(end, what="interval", decision=decision, trial=None))
            if policy.measurement is not None:
                planned = replace(policy.measurement.planned, number=number)
                store.add(CELL, replace(policy.measurement, planned=planned))
            store.add_elasticity(end)
    return folder
