"""A simulated job takes what its slowest instance allows, and its sources keep the rest or stop."""

import pytest

from bench.elasticity.dataflow import Dataflow, chain
from bench.elasticity.policy_run import sample_profile
from bench.elasticity.simulated_job import JobSimulation, SimulatedJob, SimulatedOperator

FLOW = chain("source", "map")
WORDS = chain("source", "split", "count")


TEN = SimulatedOperator(10.0)


def running(operator=TEN, instances=1, **traits):
    return JobSimulation(SimulatedJob(FLOW, {"map": operator}, **traits), {"map": instances})


def test_a_job_that_keeps_up_takes_its_load_and_waits_for_the_rest_of_the_time():
    """Its instances are busy for their share, and no source stops."""
    sample = running(instances=4).advance(10, {"source": 20.0})
    assert sample.taken == pytest.approx({"source": 20.0})
    assert sample.busy("map") == pytest.approx(0.5)
    assert [one.backpressure_s for one in sample.operators["map"]] == [0.0] * 4


def test_a_durable_source_keeps_what_is_not_taken():
    """It is worked off when instances are added."""
    simulation = running()
    assert simulation.advance(10, {"source": 15.0}).backlog == pytest.approx({"source": 50.0})
    simulation.rescale({"map": 2})
    sample = simulation.advance(10, {"source": 15.0})
    assert (sample.taken["source"], sample.backlog["source"]) == (pytest.approx(20.0), pytest.approx(0.0))


def test_a_source_that_is_not_durable_stops_as_the_spouts_of_heron_do():
    """For the share of the time by which the load is too high; all of them stop."""
    flow = Dataflow(("a", "b"), {"fast": ("a",), "slow": ("b",)})
    operators = {"fast": SimulatedOperator(100.0), "slow": SimulatedOperator(10.0)}
    simulation = JobSimulation(SimulatedJob(flow, operators, durable=False), {"fast": 1, "slow": 1})
    sample = simulation.advance(60, {"a": 40.0, "b": 40.0})
    assert sample.taken == pytest.approx({"a": 10.0, "b": 10.0})
    assert sample.operators["slow"][0].backpressure_s == pytest.approx(45.0)
    assert sample.operators["fast"][0].backpressure_s == 0
    assert sum(sample.backlog.values()) == 0


def test_the_slowest_operator_is_the_limit_of_all():
    """One word of twenty is counted: the other operator is idle for most of its time."""
    operators = {"split": SimulatedOperator(100.0, selectivity=20), "count": SimulatedOperator(100.0)}
    sample = JobSimulation(SimulatedJob(WORDS, operators), {"split": 1, "count": 1}).advance(10, {"source": 100.0})
    assert sample.taken["source"] == pytest.approx(5.0)
    assert (sample.busy("split"), sample.busy("count")) == (pytest.approx(0.05), pytest.approx(1.0))


@pytest.mark.parametrize(
    ("operator", "taken"),
    [(SimulatedOperator(10.0, hot=3.0), 20.0), (SimulatedOperator(10.0, slow=0.5), 20.0)],
    ids=["a hot key", "a slow instance"],
)
def test_the_worst_of_four_instances_is_the_limit(operator, taken):
    """Only before it records wait."""
    sample = running(operator, 4).advance(10, {"source": 40.0})
    assert sample.taken["source"] == pytest.approx(taken)
    assert [one.queued > 0 for one in sample.operators["map"]] == [True, False, False, False]


def test_nothing_is_taken_during_the_pause_of_a_change():
    """A pause may be longer than an interval; the same instances again are no change."""
    simulation = running(instances=2, rescale_s=15.0)
    simulation.rescale({"map": 2})
    assert simulation.advance(10, {"source": 10.0}).taken["source"] == pytest.approx(10.0)
    simulation.rescale({"map": 3})
    assert simulation.advance(10, {"source": 10.0}).taken["source"] == 0
    sample = simulation.advance(10, {"source": 10.0})
    assert (sample.taken["source"], sample.backlog["source"]) == (pytest.approx(15.0), pytest.approx(50.0))


def test_an_operator_may_scale_worse_than_linearly():
    """Four instances with an exponent of 0.5 have the rate of two."""
    sample = running(SimulatedOperator(10.0, scaling=0.5), 4).advance(10, {"source": 100.0})
    assert sample.taken["source"] == pytest.approx(20.0)


def test_noise_follows_from_the_seed():
    """Its spread is as given."""
    job = SimulatedJob(FLOW, {"map": SimulatedOperator(10.0)}, noise=0.1)
    runs = [JobSimulation(job, {"map": 1}, seed) for seed in (1, 1, 2)]
    taken = [[run.advance(10, {"source": 1e6}).taken["source"] for _ in range(3)] for run in runs]
    assert taken[0] == taken[1] != taken[2]
    assert all(5 < rate < 20 for rate in taken[0])


def test_a_job_without_load_does_nothing():
    """It neither takes nor fails."""
    sample = running().advance(10, {"source": 0.0})
    assert (sample.taken["source"], sample.busy("map")) == (0.0, 0.0)


def test_a_load_profile_becomes_the_mean_rate_of_each_interval():
    """Its highest rate is scaled; an interval that it does not fill is left out."""
    profile = [(90.0, 1.0), (60.0, 4.0), (45.0, 0.0)]
    assert sample_profile(profile, 60.0, 100.0) == pytest.approx([25.0, 62.5, 50.0])
