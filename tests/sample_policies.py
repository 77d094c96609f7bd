"""Policies on a running system, made up: one that follows the load at once, and one that never does."""

from msgspec.structs import replace
from sample_runs import make_measurement

from bench.elasticity.live_run import FORMAT, LivePolicyRun, LiveRecord, score_live
from bench.elasticity.live_samples import OPERATOR, SOURCE
from bench.elasticity.policy import Plan
from bench.elasticity.policy_run import Decision
from bench.elasticity.samples import InstanceSample, Sample
from bench.model.cell import Cell
from reports.data.policy_runs import ElasticSystem, ScoredPolicy

CELL = Cell("engine", "source", 1000, 0.05)


def make_decision(at: float, offered: float, running: int, planned: int) -> Decision:
    """Return an interval of 5 s of workers that take 10 messages/s at most."""
    instances = (InstanceSample(50.0, 50.0, 5.0),) * running
    taken = min(offered, 10.0 * running)
    sample = Sample(at, 5.0, {SOURCE: offered}, {SOURCE: taken}, {OPERATOR: instances}, {SOURCE: 5 * (offered - taken)})
    return Decision(sample, {OPERATOR: running}, Plan({OPERATOR: planned}, "<b>because</b>"))


def make_policy(name: str, *decisions: Decision, lost: int = 0, failure: str = "") -> ScoredPolicy:
    """Return a run, complete unless it failed."""
    run = LivePolicyRun(
        "engine/source", name, 1, list(decisions), LiveRecord(FORMAT, "engine/source", name, 1, "end", reason=failure)
    )
    measurement = replace(make_measurement(0, 10.0, 20.0), lost=lost, duplicated=0, processed_again=7)
    return ScoredPolicy(run, score_live(decisions), measurement)


QUICK_ONE = make_policy("quick", make_decision(5, 30.0, 1, 3), make_decision(10, 30.0, 3, 3))
SLOW_ONE = make_policy("slow", make_decision(5, 30.0, 1, 1), make_decision(10, 30.0, 1, 1), lost=4)
BOTH = ElasticSystem("engine/source", (SLOW_ONE, QUICK_ONE))
