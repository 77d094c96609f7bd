"""Scaling policies decide as their papers say, and say why."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.elasticity.dataflow import Dataflow, chain
from bench.elasticity.dhalion import Dhalion, DhalionSettings, diagnose, is_skewed, largest_slope, scale_up
from bench.elasticity.ds2 import Ds2, Ds2Settings, target_rates
from bench.elasticity.fixed import Fixed, FixedSettings
from bench.elasticity.policy_run import run_policy, score_run
from bench.elasticity.samples import InstanceSample, Sample
from bench.elasticity.simulated_job import JobSimulation, SimulatedJob, SimulatedOperator
from bench.elasticity.threshold import Threshold, ThresholdSettings
from bench.errors import UsageError
from bench.units import Seconds, Share

FLOW = chain("source", "map")


def sample(at, processed, *, offered=100.0, taken=100.0, seconds=10.0, useful=None, backlog=0.0):
    """Return a sample of an operator whose instances processed so many records, each of them busy for `useful` s."""
    instances = tuple(InstanceSample(done, done, seconds if useful is None else useful) for done in processed)
    return Sample(
        at, seconds, {"source": offered}, {"source": taken}, {"map": instances}, {"source": backlog} if backlog else {}
    )


def ds2(**settings):
    return Ds2(Ds2Settings(**{"warm_up_time": Seconds(0), **settings}), FLOW)


def decided(policy, *samples):
    return policy.decide(samples, samples[-1].parallelism)


# --- ds2


def test_ds2_reaches_its_answer_in_one_step_and_says_why():
    """An instance that is always busy at 25 records/s: 100 records/s need four."""
    plan = decided(ds2(), sample(10, [250.0], taken=25.0))
    assert plan.parallelism == {"map": 4}
    assert "map 4.00" in plan.reason


def test_ds2_waits_for_the_warm_up_and_for_enough_intervals():
    """The largest of the decisions counts, or the median."""
    samples = [sample(at, [done]) for at, done in ((10, 900.0), (20, 250.0), (30, 500.0), (40, 200.0))]
    assert decided(ds2(warm_up_time=Seconds(30)), *samples[:3]).parallelism == {"map": 1}
    assert "0 of 1" in decided(ds2(warm_up_time=Seconds(30)), *samples[:3]).reason
    assert decided(ds2(activation_time=3), *samples[:2]).parallelism == {"map": 1}
    assert decided(ds2(activation_time=3), *samples).parallelism == {"map": 5}
    assert decided(ds2(activation_time=3, activation="median"), *samples).parallelism == {"map": 4}


@pytest.mark.parametrize(
    ("needed", "settings", "planned"),
    [
        (7, {}, 8),
        (6, {}, 6),
        (6, {"ignored_scale_down": 2}, 8),
        (9, {}, 9),
        (9, {"ignored_scale_up": 1}, 8),
        (1, {"scale_down_max_factor": Share(0.5)}, 4),
        (1, {"scale_down_interval": Seconds(60)}, 8),
        (20, {"max_parallelism": 12}, 12),
        (6, {"utilization_target": Share(0.5)}, 12),
    ],
    ids=str,
)
def test_small_changes_are_ignored_and_large_ones_limited(needed, settings, planned):
    """Eight instances run; one fewer is ignored as shipped."""
    each = 100.0 / needed * 10
    assert decided(ds2(**settings), sample(10, [each] * 8)).parallelism == {"map": planned}


def test_an_overhead_that_useful_time_does_not_show_is_corrected_by_the_target_rate_ratio():
    """By true rates eight instances are enough, but only 80 of 100 records/s are taken."""
    behind = sample(10, [125.0] * 8, taken=80.0)
    plan = decided(ds2(), behind)
    assert plan.parallelism == {"map": 10}
    assert "times 1.25" in plan.reason
    assert decided(ds2(target_rate_ratio=1.3), behind).parallelism == {"map": 8}


def test_a_backlog_and_the_time_of_a_restart_are_caught_up_with():
    """Of 1,000 records, and those of 10 s at 100 records/s, 20 records/s are worked off in 100 s."""
    settings = Ds2Settings(catch_up_duration=Seconds(100), restart_time=Seconds(10))
    assert target_rates(sample(10, [1.0], backlog=1000.0), settings) == {"source": 120.0}
    assert target_rates(sample(10, [1.0], backlog=1000.0), Ds2Settings()) == {"source": 100.0}


def test_a_utilization_target_leaves_room_for_what_is_offered_and_not_for_the_backlog():
    """Of 100 records/s at 50 % and 60,000 in 600 s: 200 + 100, as Flink's autoscaler computes it."""
    settings = Ds2Settings(catch_up_duration=Seconds(600), utilization_target=Share(0.5))
    assert target_rates(sample(10, [1.0], backlog=60_000.0), settings) == {"source": 300.0}


def test_a_scale_up_that_did_not_help_is_not_repeated():
    """Twice the instances have 1.05 times the true rate, where twice was expected."""
    samples = [sample(10, [250.0]), sample(20, [131.0] * 2)]
    plan = decided(ds2(scaling_effectiveness_threshold=Share(0.1)), *samples)
    assert plan.parallelism == {"map": 2}
    assert "not effective" in plan.reason
    assert decided(ds2(), *samples).parallelism == {"map": 8}


def test_the_scalability_that_was_observed_is_used():
    """Two instances had 0.68 of what twice the first one is, by least squares."""
    samples = [sample(10, [250.0]), sample(20, [150.0] * 2)]
    assert decided(ds2(), *samples).parallelism == {"map": 7}
    assert decided(ds2(observed_scalability=True), *samples).parallelism == {"map": 10}


def test_an_operator_without_any_work_stays_as_it_is():
    """Its true rate is not known."""
    assert decided(ds2(), sample(10, [0.0, 0.0])).parallelism == {"map": 2}


def test_without_any_load_one_instance_is_enough():
    """No true rate is needed for that."""
    assert decided(ds2(), sample(10, [0.0] * 4, offered=0.0, taken=0.0)).parallelism == {"map": 1}


@given(capacity=st.floats(100, 1e4), scaling=st.floats(0.6, 1.0), start=st.integers(1, 40), load=st.floats(10, 2e3))
def test_ds2_approaches_a_job_that_scales_worse_than_linearly_from_one_side(capacity, scaling, start, load):
    """Upwards it never has more instances than at the end, and then it stays."""
    job = SimulatedJob(FLOW, {"map": SimulatedOperator(capacity, scaling=scaling)}, durable=False)
    run = run_policy(
        JobSimulation(job, {"map": start}), ds2(ignored_scale_down=0), [{"source": load}] * 30, interval=10
    )
    counts = [decision.instances for decision in run]
    rising = counts[counts.index(min(counts)) :]
    assert rising == sorted(rising)
    assert not run[-1].is_change


@pytest.mark.parametrize("seed", range(20))
def test_ds2_solves_random_dataflows_in_one_step(seed):
    """Each operator reads one or two of those before it; the answer holds, and one instance less of any would not."""
    random = np.random.default_rng(seed)
    names = [f"o{number}" for number in range(int(random.integers(1, 8)))]
    upstream = {}
    for number, name in enumerate(names):
        before = ["source", *names[:number]]
        upstream[name] = tuple(random.choice(before, size=min(len(before), int(random.integers(1, 3))), replace=False))
    flow = Dataflow(("source",), {name: tuple(map(str, read)) for name, read in upstream.items()})
    operators = {
        name: SimulatedOperator(float(random.uniform(1e2, 1e3)), float(random.uniform(0.2, 1.2))) for name in names
    }
    job = SimulatedJob(flow, operators, durable=False)
    policy = Ds2(Ds2Settings(warm_up_time=Seconds(0)), flow)
    run = run_policy(JobSimulation(job, dict.fromkeys(names, 1)), policy, [{"source": 300.0}] * 4, interval=10)
    assert sum(decision.is_change for decision in run) <= 1
    assert run[-1].sample.taken["source"] == pytest.approx(300.0)
    loads = job.instance_loads(run[-1].running, {"source": 300.0})
    for name, count in run[-1].running.items():
        assert count == 1 or loads[name].sum() > operators[name].rate * (count - 1)


# --- dhalion


def instances(queues, rates=None):
    return [
        InstanceSample(rate, 0.0, 1.0, queued=queue) for queue, rate in zip(queues, rates or [10] * 9, strict=False)
    ]


@pytest.mark.parametrize(
    ("queues", "rates", "diagnosis", "named"),
    [
        ([100, 100, 90], [10, 10, 10], "under-provisioned", []),
        ([100, 2, 60], [10, 10, 10], "slow instance", [0, 2]),
        ([100, 2, 60], [30, 10, 10], "data skew", [0]),
        ([100, 90, 90], [30, 10, 10], "none", []),
    ],
    ids=["neither", "queues", "both", "rates"],
)
def test_the_diagnosis_follows_from_both_skews(queues, rates, diagnosis, named):
    """It names the instances with the long queues, and with data skew only those that also process most."""
    assert diagnose(instances(queues, rates), DhalionSettings()) == (diagnosis, named)


def test_values_are_skewed_above_the_ratio_only():
    """One instance alone is not, nor are equal ones."""
    assert [is_skewed(each, 1.5) for each in ([15, 10], [15.1, 10], [1, 0], [0, 0], [7])] == [
        False,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("pressure", "before", "after"), [(500, 2, 4), (750, 2, 8), (500, 3, 6), (1000, 2, 10), (5000, 2, 10), (0, 3, 3)]
)
def test_back_pressure_says_how_many_instances_are_missing(pressure, before, after):
    """The values are those of the published code; the factor is at most five."""
    assert scale_up(pressure, before) == after


@given(queues=st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=3, max_size=10))
def test_the_slope_of_a_queue_is_that_of_a_least_squares_line(queues):
    """The steepest of all instances counts."""
    times = [60.0 * number for number in range(len(queues))]
    expected = max(np.polyfit(times, np.asarray(queues)[:, index], 1)[0] for index in range(3))
    assert largest_slope(times, queues) == pytest.approx(expected, abs=1e-6)


def test_two_samples_have_no_slope():
    """Three are needed."""
    assert largest_slope([0, 1], [[0], [9]]) == 0


def pressed(at, count, backpressure, taken=50.0):
    """Return a sample with `backpressure` seconds of 60 at one operator."""
    ones = tuple(InstanceSample(10, 10, 60.0, backpressure / count, 100.0) for _ in range(count))
    return Sample(at, 60.0, {"source": 100.0}, {"source": taken}, {"map": ones})


def test_dhalion_waits_after_a_change_and_blacklists_what_did_not_help():
    """A scale-up after which the job takes no more is not repeated."""
    policy = Dhalion(DhalionSettings(), FLOW)
    before = pressed(60, 1, 30)
    assert decided(policy, before).parallelism == {"map": 2}
    after = [pressed(60 + 60 * number, 2, 30) for number in (1, 2, 3)]
    assert "waits until 180 s" in decided(policy, before, *after[:2]).reason
    assert "blacklisted" in decided(policy, before, *after).reason
    helped = [pressed(60 + 60 * number, 2, 30, taken=75.0) for number in (1, 2, 3)]
    assert decided(policy, before, *helped).parallelism == {"map": 4}


def test_dhalion_diagnoses_one_operator_at_a_time():
    """Back-pressure at two is an error in the original; ours changes nothing and says so."""
    flow = chain("source", "map", "sink")
    ones = (InstanceSample(10, 10, 60.0, 30.0),)
    both = Sample(60.0, 60.0, {"source": 2.0}, {"source": 1.0}, {"map": ones, "sink": ones})
    assert "no diagnosis" in decided(Dhalion(DhalionSettings(), flow), both).reason


def test_a_scale_down_after_which_back_pressure_returns_is_undone_and_blacklisted():
    """It is off unless a share is set."""
    idle = [pressed(60, 4, 0, taken=100.0)]
    assert decided(Dhalion(DhalionSettings(), FLOW), *idle).parallelism == {"map": 4}
    policy = Dhalion(DhalionSettings(scale_down=Share(0.5)), FLOW)
    assert decided(policy, *idle).parallelism == {"map": 2}
    back = [pressed(60 + 60 * number, 2, 30) for number in (1, 2, 3)]
    assert decided(policy, *idle, *back).parallelism == {"map": 4}
    again = [pressed(240 + 60 * number, 4, 0, taken=100.0) for number in (1, 2, 3)]
    assert decided(policy, *idle, *back, *again).parallelism == {"map": 4}


def test_a_share_that_leaves_a_whole_number_is_not_rounded_down():
    """0.2 of ten are two, although 10 x (1 - 0.8) is less in binary."""
    idle = [pressed(60, 10, 0, taken=100.0)]
    assert decided(Dhalion(DhalionSettings(scale_down=Share(0.8)), FLOW), *idle).parallelism == {"map": 2}


def test_dhalion_keeps_what_it_has_while_a_queue_is_long():
    """Nothing is removed before it is empty."""
    long = Sample(60.0, 60.0, {"source": 1.0}, {"source": 1.0}, {"map": (InstanceSample(1, 1, 1.0, 0.0, 5000.0),) * 4})
    assert decided(Dhalion(DhalionSettings(scale_down=Share(0.5)), FLOW), long).parallelism == {"map": 4}


@pytest.mark.parametrize(
    ("operator", "diagnosis"),
    [
        (SimulatedOperator(10.0, hot=3.0), "data skew of map\\[0\\]"),
        (SimulatedOperator(10.0, slow=0.5), "slow instance of map\\[0\\]"),
        (SimulatedOperator(10.0), "under-provisioned"),
    ],
    ids=["a hot key", "a slow instance", "too few"],
)
def test_dhalion_finds_what_is_wrong_with_a_simulated_job(operator, diagnosis):
    """Where the first of four instances is the limit, more instances are not its answer."""
    job = SimulatedJob(FLOW, {"map": operator}, durable=False)
    run = run_policy(JobSimulation(job, {"map": 4}), Dhalion(DhalionSettings(), FLOW), [{"source": 60.0}], interval=60)
    assert re.search(diagnosis, run[0].plan.reason)


# --- threshold and fixed


def test_threshold_adds_and_removes_by_the_busy_share():
    """An instance at a time, and never the last one."""
    policy = Threshold(ThresholdSettings(), FLOW)
    assert decided(policy, sample(10, [90.0] * 2, useful=9.0)).parallelism == {"map": 3}
    assert decided(policy, sample(10, [90.0] * 2, useful=5.0)).parallelism == {"map": 2}
    assert decided(policy, sample(10, [90.0] * 2, useful=2.0)).parallelism == {"map": 1}
    assert decided(policy, sample(10, [90.0], useful=2.0)).parallelism == {"map": 1}
    assert "more than 80%" in decided(policy, sample(10, [90.0], useful=9.0)).reason


def test_threshold_waits_after_a_change():
    """For its cooldown."""
    policy = Threshold(ThresholdSettings(cooldown=Seconds(20)), FLOW)
    samples = [sample(10, [90.0]), sample(20, [90.0] * 2), sample(30, [90.0] * 2)]
    assert decided(policy, *samples[:2]).parallelism == {"map": 2}
    assert decided(policy, *samples).parallelism == {"map": 3}


def test_settings_that_contradict_each_other_are_refused():
    """In one line that says which."""
    with pytest.raises(UsageError, match="below"):
        Threshold(ThresholdSettings(above=Share(0.3), below=Share(0.5)), FLOW)
    with pytest.raises(UsageError, match="reduce"):
        Fixed(FixedSettings({"reduce": 3}), FLOW)


def test_fixed_runs_what_was_chosen():
    """Whatever the load is."""
    assert decided(Fixed(FixedSettings({"map": 7}), FLOW), sample(10, [1.0])).parallelism == {"map": 7}
    assert decided(Fixed(FixedSettings(), FLOW), sample(10, [1.0])).parallelism == {"map": 1}


# --- the score


def test_a_score_counts_what_was_missed_and_what_it_cost():
    """Two instances of 50 records/s; 100 are due, then 200, which are met after one interval with four."""
    job = SimulatedJob(FLOW, {"map": SimulatedOperator(50.0)})
    load = [{"source": rate} for rate in (100.0, 100.0, 200.0, 200.0, 200.0)]
    score = score_run(run_policy(JobSimulation(job, {"map": 2}), ds2(), load, interval=10))
    assert (score.under_target_s, score.changes, score.most_instances, score.settled_s) == (10.0, 1, 4, 10.0)
    assert (score.max_backlog, score.instance_s) == (pytest.approx(1000.0), 140.0)
    assert score.max_wait_s == pytest.approx(10.0)


def test_a_plan_at_the_end_of_the_load_changes_nothing():
    """Nothing follows that would need it; its reason is kept."""
    job = SimulatedJob(FLOW, {"map": SimulatedOperator(50.0)})
    (last,) = run_policy(JobSimulation(job, {"map": 2}), ds2(), [{"source": 200.0}], interval=10)
    assert (last.is_change, score_run([last]).changes) == (False, 0)
    assert last.plan.reason.endswith("; the load has ended")


def test_a_pause_as_long_as_an_interval_keeps_records_waiting_for_ever():
    """Nothing is taken, so that no time is known."""
    job = SimulatedJob(FLOW, {"map": SimulatedOperator(50.0)}, rescale_s=10.0)
    score = score_run(run_policy(JobSimulation(job, {"map": 1}), ds2(), [{"source": 100.0}] * 3, interval=10))
    assert score.max_wait_s == float("inf")
