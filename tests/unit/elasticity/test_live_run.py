"""What a run keeps of policies on running systems, and their scores."""

from bench.elasticity.live_run import FORMAT, LiveRecord, policy_runs, score_live, worker_rate
from bench.elasticity.live_samples import OPERATOR, SOURCE
from bench.elasticity.policy import Plan
from bench.elasticity.policy_run import Decision
from bench.elasticity.samples import InstanceSample, Sample


def decision(at, offered, running, planned, *, taken=None):
    """Return an interval of 5 s in which each worker was always useful, at 10 messages/s."""
    instances = (InstanceSample(50.0, 50.0, 5.0),) * running
    rate = offered if taken is None else taken
    sample = Sample(at, 5.0, {SOURCE: offered}, {SOURCE: rate}, {OPERATOR: instances}, {SOURCE: 0.0})
    return Decision(sample, {OPERATOR: running}, Plan({OPERATOR: planned}, "because"))


UP_AND_DOWN = [
    decision(5, 10.0, 1, 1),
    decision(10, 30.0, 1, 5, taken=10.0),
    decision(15, 30.0, 5, 3),
    decision(20, 30.0, 3, 3),
    decision(25, 10.0, 3, 1),
    decision(30, 10.0, 1, 1),
]


def record(what, attempt=1, **fields):
    return LiveRecord(FORMAT, "engine/source", "ds2", attempt, what, **fields)


def test_a_score_counts_steps_overshoot_and_the_time_to_settle():
    """Three workers are right for 30 messages/s: five are two too many, and the second step settles after 10 s."""
    found = score_live(UP_AND_DOWN)
    assert (found.steps, found.overshoot, found.settle_s) == (2, 2, 10.0)
    assert worker_rate(UP_AND_DOWN) == 10.0


def test_a_load_that_is_not_met_at_its_end_never_settles():
    """There is no time to settle then."""
    assert score_live([decision(5, 30.0, 1, 1, taken=10.0)]).settle_s is None


def test_the_last_attempt_counts():
    """One that a kill interrupted is left out; a failed one is not complete."""
    first = [record("interval", decision=UP_AND_DOWN[0])]
    second = [record("interval", 2, decision=UP_AND_DOWN[1]), record("end", 2, trial=0)]
    assert not policy_runs(first)[0].is_complete
    (run,) = policy_runs([*first, *second])
    assert (run.attempt, run.decisions, run.is_complete) == (2, [UP_AND_DOWN[1]], True)
    assert not policy_runs([record("end", reason="it died")])[0].is_complete
    assert policy_runs([record("unsupported", reason="it is fixed")])[0].is_unsupported
