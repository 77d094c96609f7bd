"""Readings have known answers for continuous, pull and receiver engines, whatever the window is."""

import math

import pytest
from msgspec.structs import replace

from bench.analysis.capacity_reading import read_capacity, without_light_batches
from bench.analysis.stability import assess_stability
from bench.analysis.verdict import Rules, Verdict, judge
from bench.model.measurement import PlannedTrial
from bench.search.posterior import CapacityPrior, capacity_posterior
from bench.simulation.capacity import Traits
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.simulation.micro_batches import MicroBatches

CALM = Traits(1000.0, noise=0.0, pause_gap=0.0, warm_up=0.0)
PULL = replace(CALM, batch_interval=1.0, reader="pull", fixed_cost=0.4)
RECEIVER = replace(PULL, reader="receiver")


def reading_at(rate, traits=CALM, window=20.0):
    """Return the reading of a trial at that rate of a simulated system."""
    system = MicroBatches(traits, 1) if traits.reader else Fluid(traits, Faults(), 1)
    measurement = system.run_trial(PlannedTrial(0, rate, max(1.0, traits.batch_interval), window, "search"), 60.0)
    return read_capacity(measurement, judge(measurement, Rules()), assess_stability(measurement))


def test_an_overloaded_continuous_system_shows_its_capacity():
    """It works all the time, so the rate at which it processes is its capacity."""
    reading = reading_at(1300.0)
    assert (reading.kind, reading.ratio) == ("estimate", 1.0)
    assert reading.rate == pytest.approx(1000.0, rel=0.01)
    assert reading.excess == pytest.approx(math.log(1.3), abs=0.02)


def test_a_sustained_continuous_system_shows_a_bound():
    """Its capacity is at least the offered rate, but for messages that may have been left without a sign of it."""
    many, few = reading_at(800.0), reading_at(1.0, window=60.0)
    assert (many.kind, few.kind) == ("at least", "at least")
    assert many.rate == pytest.approx(800.0, rel=0.0002)
    assert few.rate == pytest.approx(60 / 63)


@pytest.mark.parametrize("traits", [PULL, RECEIVER], ids=["pull", "receiver"])
@pytest.mark.parametrize("share", [0.7, 0.95, 1.1])
def test_batches_show_the_capacity_at_any_rate(traits, share):
    """Known fixed costs turn a sustained and an overloaded trial into the same capacity: (B - f) / s."""
    reading = reading_at(share * traits.truth, traits)
    assert reading.kind == "estimate"
    assert math.exp(reading.log_capacity(0.4)) == pytest.approx(traits.truth, rel=0.03)


def reading_far_beyond(traits):
    """Return the reading of a short trial at 20 times the capacity, which was given up and purged."""
    system, rate = MicroBatches(traits, 1), 20 * traits.truth
    measurement = system.run_trial(PlannedTrial(0, rate, 1.0, 6.2, "search"), 60.0)
    assert measurement.purged
    return read_capacity(measurement, judge(measurement, Rules()), assess_stability(measurement))


@pytest.mark.parametrize("traits", [PULL, RECEIVER], ids=["pull", "receiver"])
def test_one_batch_far_beyond_the_capacity_shows_it(traits):
    """A probe at 2000/s of a system that takes 100/s completes one batch, of 12 s: it gave no estimate."""
    reading = reading_far_beyond(traits)
    assert (reading.kind, reading.near) == ("estimate", True)
    assert math.exp(reading.log_capacity(0.4)) == pytest.approx(traits.truth, rel=0.03)


def test_the_counter_of_a_purged_trial_shows_batches_after_its_load():
    """The system was busy until the trial was given up, which is long after the load had ended."""
    reading = reading_far_beyond(replace(RECEIVER, reports_batches=False))
    assert (reading.kind, reading.near) == ("estimate", True)
    assert math.exp(reading.log_capacity(0.4)) == pytest.approx(RECEIVER.truth, rel=0.05)


def test_a_drain_that_was_followed_shows_a_capacity_far_below_the_rate():
    """Two batches at 2000/s of a system that takes 250/s: the second had all that was left, and was the last one."""
    system = MicroBatches(replace(PULL, mean_capacity=400.0, reports_batches=False), 1)
    measurement = system.run_trial(PlannedTrial(0, 2000.0, 1.0, 6.2, "search"), 30.0)
    verdict = judge(measurement, Rules())
    reading = read_capacity(measurement, verdict, assess_stability(measurement))
    assert measurement.drained
    assert verdict.loss > 0.75
    assert reading.kind == "estimate"
    assert reading.rate == pytest.approx(400.0, rel=0.1)


def test_what_a_receiver_takes_in_is_its_capacity_where_batches_have_time_left():
    """1 MB through Spark's socket: batches of 0.2 s showed 1317/s where the receiver took in 430/s."""
    starved = replace(RECEIVER, intake=0.3)
    overloaded, sustained = (reading_at(share * starved.truth, starved) for share in (1.4, 0.9))
    assert overloaded.starved
    assert math.exp(overloaded.log_capacity(0.0)) == pytest.approx(starved.truth, rel=0.03)
    assert math.exp(sustained.log_capacity(0.4)) > 1.5 * starved.truth
    bound = without_light_batches([sustained, overloaded])[0]
    assert (bound.kind, bound.log_capacity(0.4)) == ("at least", math.log(sustained.rate))


def test_light_batches_beside_other_work_are_one_bound_where_a_receiver_is_the_limit():
    """They have time left, with or without other work: their rate is all that they show."""
    starved = replace(RECEIVER, intake=0.3)
    overloaded, sustained = (reading_at(share * starved.truth, starved) for share in (1.4, 0.9))
    doubtful = replace(sustained, doubt=0.1)
    processed = replace(sustained, kind="at least", beside="processed")
    bounds = without_light_batches([sustained, doubtful, processed, overloaded])[:3]
    assert {(each.kind, each.log_capacity(0.4), each.doubt) for each in bounds} == {
        ("at least", math.log(sustained.rate), 0.0)
    }
    assert [each.beside for each in bounds] == ["", "sustained", "processed"]


def test_the_counter_of_stretching_batches_shows_the_same_capacity():
    """Without reported batches the distance of completed batches is the time that they take."""
    reading = reading_at(1.2 * PULL.truth, replace(PULL, reports_batches=False), window=60.0)
    assert math.exp(reading.log_capacity(0.4)) == pytest.approx(PULL.truth, rel=0.05)


@pytest.mark.parametrize(("foreign", "kind"), [(0.0, "estimate"), (0.02, "estimate"), (0.4, "at least")])
def test_sustained_batches_beside_other_work_are_a_bound(foreign, kind):
    """A demo beside a simulation had 581/s, 341 to 1,020, for a cell that sustains 2,700/s alone."""
    system, available = MicroBatches(PULL, 1), 40.0
    measurement = system.run_trial(PlannedTrial(0, 0.9 * PULL.truth, 1.0, 20.0, "search"), 60.0)
    cpu = {"seconds": 20.0, "framework": 8.0, "steal": 0.0, "busy": 8.0 + foreign * available, "available": available}
    measurement = replace(measurement, cpu=cpu)
    verdict = judge(measurement, Rules())
    reading = read_capacity(measurement, verdict, assess_stability(measurement))
    assert (verdict.word, reading.kind) == ("sustained", kind)
    assert (0 < reading.doubt < 0.05) is (foreign == 0.02)
    assert kind == "estimate" or reading.log_capacity(0.0) <= math.log(PULL.truth)


def test_a_fixed_cost_beyond_the_batch_is_impossible():
    """Its capacity would be infinite."""
    assert reading_at(0.3 * PULL.truth, PULL).log_capacity(0.9) == math.inf


def test_a_system_that_was_hardly_processed_shows_an_upper_bound_only():
    """A breach of another objective bounds the rate from above."""
    measurement = Fluid(CALM, Faults(), 1).run_trial(PlannedTrial(0, 500.0, 1.0, 10.0, "search"), 30.0)
    reading = read_capacity(measurement, Verdict("overloaded", "p99 3 s above 2 s"), assess_stability(measurement))
    assert (reading.kind, reading.rate) == ("at most", 500.0)


def test_slices_show_noise_and_a_calm_system_shows_none():
    """The scatter of a noisy system's slices is larger."""
    calm, noisy = (reading_at(1300.0, replace(CALM, noise=noise)).spread for noise in (0.0, 0.2))
    assert calm < 0.02 < 0.05 < noisy


@pytest.mark.parametrize("traits", [PULL, RECEIVER], ids=["pull", "receiver"])
def test_the_answer_does_not_depend_on_the_window(traits):
    """D3: windows of 6.2, 15, 60 and 300 s give intervals that overlap and hold (B - f) / s."""
    noisy, intervals = replace(traits, noise=0.04), []
    for window in (6.2, 15.0, 60.0, 300.0):
        readings = [reading_at(share * traits.truth, noisy, window) for share in (0.9, 1.1)]
        posterior = capacity_posterior(CapacityPrior(10.0, 1e5, 700.0, 0.7), readings, batches=True)
        intervals.append(posterior.interval(1.1))
    assert max(low for low, _, _ in intervals) < min(high for _, _, high in intervals)
    assert all(low < traits.truth < high for low, _, high in intervals)


@pytest.mark.parametrize("took", [0.0, -0.5])
def test_a_batch_that_ends_before_it_begins_is_left_out(took):
    """A clock may have been stepped; the other batches have a reading."""
    measurement = MicroBatches(PULL, 1).run_trial(PlannedTrial(0, 500.0, 1.0, 20.0, "search"), 60.0)
    batches = measurement.batches
    odd = replace(batches, end=[batches.begin[0] + took if at == 8 else end for at, end in enumerate(batches.end)])
    seen = replace(measurement, batches=replace(odd, begin=[*batches.begin[:8], batches.begin[0], *batches.begin[9:]]))
    readings = [read_capacity(one, judge(one, Rules()), assess_stability(one)) for one in (measurement, seen)]
    assert readings[1].ratio == pytest.approx(readings[0].ratio, rel=0.05)
