"""The posterior of the capacity: readings narrow it, none has a veto, fixed costs and warm-ups are unknowns of it."""

import math

import pytest
from msgspec.structs import replace

from bench.analysis.capacity_reading import Reading, merge_beside_other_work
from bench.search.pooling import pool_warm_ups
from bench.search.posterior import (
    COLD_SHARE,
    COLD_WEIGHTS,
    WARM_UPS_S,
    CapacityPrior,
    capacity_posterior,
    expected_speed,
)

PRIOR = CapacityPrior(1.0, 1e6, 1000.0, 0.5)


def interval(*readings, prior=PRIOR, batches=False):
    return capacity_posterior(prior, readings, batches=batches).interval(1.0)


def test_estimates_narrow_the_posterior_around_the_capacity():
    """Twenty estimates of 30 s leave an interval of a few per cent."""
    low, middle, high = interval(*[Reading("estimate", 1300.0, seconds=30.0)] * 20)
    assert middle == pytest.approx(1300.0, rel=0.01)
    assert high / low < 1.1


def test_an_outlier_cannot_exclude_the_capacity():
    """One estimate of half the capacity moves the median by little."""
    good = [Reading("estimate", 1000.0, seconds=30.0)] * 6
    assert interval(*good, Reading("estimate", 500.0, seconds=30.0))[1] == pytest.approx(1000.0, rel=0.05)


def test_what_other_work_may_have_caused_is_common_to_all_trials():
    """Twenty trials that lost up to 12 % to other work leave both possible: that it took all of this, and nothing."""
    low, _, high = interval(*[Reading("estimate", 1000.0, seconds=15.0, doubt=0.12)] * 20)
    assert low < 1000.0
    assert high > 1110.0


def test_work_that_takes_most_of_the_machine_may_hide_most_of_the_capacity():
    """Where it explains a loss of 75 %, the capacity may be four times what was processed."""
    high = interval(*[Reading("estimate", 1000.0, seconds=15.0, doubt=0.75)] * 5, prior=CapacityPrior(1.0, 1e6))[2]
    assert high > 4000.0


def test_a_batch_longer_than_its_interval_is_no_bound_without_its_fixed_cost():
    """Batches with a fixed cost process more when they are large than what keeps the interval."""
    bound = Reading("at least", 1000.0, ratio=1.5, seconds=60.0, beside="processed")
    other = Reading("estimate", 400.0, 0.95, 60.0)
    known = replace(PRIOR, fixed_share=0.6)
    assert interval(bound, other, prior=known, batches=True)[0] < 450.0


def test_sustained_trials_that_are_left_of_many_beside_other_work_are_one_bound():
    """At the capacity half of the trials are invalid; the others, sustained 1 or 2 % above it, do not exclude it."""
    others = [Reading("estimate", 1000.0, seconds=10.0)] * 2
    left = [Reading("at least", rate, seconds=10.0, beside="sustained") for rate in (1010.0, 1020.0)] * 5
    invalid = [Reading("at least", 990.0, seconds=10.0, beside="processed")] * 10
    low, _, high = interval(*merge_beside_other_work([*others, *left, *invalid]))
    assert low < 1000.0 < high
    assert interval(*others, *left, *invalid)[0] > 1000.0


@pytest.mark.parametrize(("kind", "side"), [("at least", 1), ("at most", -1)])
def test_a_bound_moves_the_posterior_to_its_side(kind, side):
    """Bounds at the centre of the prior leave one side of it."""
    middle = interval(*[Reading(kind, 1000.0, seconds=30.0)] * 3)[1]
    assert side * math.log(middle / 1000.0) > 0.05


def test_scatter_within_the_trials_is_noise():
    """A trial whose slices agree leaves a narrower interval than one whose slices do not."""
    calm, noisy = (interval(Reading("estimate", 1000.0, seconds=15.0, spread=spread)) for spread in (0.01, 0.5))
    assert calm[2] / calm[0] < noisy[2] / noisy[0]


def test_trials_that_agree_by_chance_are_as_noisy_as_their_slices_show():
    """Six trials whose results differ by 1 % leave more open where the batches of each of them differ by a fifth."""
    calm, noisy = (
        interval(
            *[Reading("estimate", rate, 0.99, 30.0, spread=spread) for rate in (980.0, 990.0, 1000.0) * 2], batches=True
        )
        for spread in (0.05, 0.2)
    )
    assert math.log(noisy[2] / noisy[0]) > 1.5 * math.log(calm[2] / calm[0])


def test_few_noisy_trials_among_calm_ones_are_no_lower_limit():
    """The root mean square of all of them is below what pauses show."""
    spreads = (0.07, 0.07, 0.07, *[0.01] * 9)
    low, middle, high = interval(
        *[Reading("estimate", 990.0, 0.99, 30.0, spread=each) for each in spreads], batches=True
    )
    assert low < middle < high


def test_long_batches_of_a_system_that_pulls_do_not_say_that_they_cost_nothing_besides_their_messages():
    """They keep each rate that was offered, so that five trials agree without a fixed cost whatever it really is."""
    pulled = [Reading("estimate", 1000.0 * ratio, ratio, 20.0) for ratio in (1.05, 1.1, 1.15, 1.2, 1.25)]
    posterior = capacity_posterior(PRIOR, pulled, batches=True)
    assert posterior.fixed_share > 0.1
    assert posterior.interval(1.0)[0] < 930.0


def test_noise_that_is_usual_on_the_map_is_expected():
    """Calm other cells leave a narrower interval; the cell's own scatter outweighs them."""
    calm = (0.5, 0.3, 0.15, 0.03, 0.01, 0.01)
    readings = [Reading("estimate", 1000.0, seconds=5.0), Reading("estimate", 1020.0, seconds=5.0)]
    alone, told = (interval(*readings, prior=replace(PRIOR, noise=noise)) for noise in ((), calm))
    assert told[2] / told[0] < alone[2] / alone[0]
    scattered = [Reading("estimate", rate, seconds=5.0) for rate in (700.0, 1000.0, 1400.0, 800.0, 1300.0)]
    alone, told = (interval(*scattered, prior=replace(PRIOR, noise=noise)) for noise in ((), calm))
    assert told[2] / told[0] > 0.8 * alone[2] / alone[0]


def test_the_evidence_of_the_noise_does_not_depend_on_what_was_expected():
    """It is a likelihood: other cells may use it without counting their own evidence twice."""
    readings = [Reading("estimate", rate, seconds=5.0) for rate in (900.0, 1000.0, 1100.0)]
    expected = replace(PRIOR, noise=(0.3, 0.3, 0.1, 0.1, 0.1, 0.1))
    first, second = (capacity_posterior(prior, readings, batches=False) for prior in (PRIOR, expected))
    assert first.noise_likelihood == pytest.approx(second.noise_likelihood, abs=1e-3)
    assert max(first.noise_likelihood) == 1


def test_a_rate_far_beyond_the_capacity_says_less():
    """The farther beyond its capacity, the less a system behaves as at its capacity."""
    near, far = (interval(Reading("estimate", 1000.0, seconds=15.0, excess=excess)) for excess in (0.0, 2.0))
    assert near[2] / near[0] < far[2] / far[0]


def test_batches_of_two_lengths_show_the_fixed_cost():
    """Batches of 400 and 500 messages that take 0.8 and 0.9 s have 0.4 s of fixed cost: 600 messages keep 1 s."""
    readings = [Reading("estimate", 400.0, 0.8, 60.0), Reading("estimate", 500.0, 0.9, 60.0)] * 3
    posterior = capacity_posterior(PRIOR, readings, batches=True)
    low, _, high = posterior.interval(1.1)
    assert low < 600.0 < high
    assert posterior.fixed_share == pytest.approx(0.4, abs=0.12)


def test_a_cold_system_may_be_faster_than_it_showed():
    """Three trials in the first ten seconds of a cold system do not bound it from above; of a warm one they do."""
    readings = [Reading("estimate", 1000.0, seconds=5.0, age=age) for age in (2.0, 6.0, 10.0)]
    cold, warm = (interval(*readings, prior=CapacityPrior(1.0, 1e6, 1000.0, 0.5, cold=cold)) for cold in (True, False))
    assert cold[2] > 1500.0 > warm[2]


def test_what_a_cold_system_showed_says_less_than_what_it_shows_later():
    """Of two estimates that differ, the later one decides where the system needed a minute until full speed."""
    sixty = replace(PRIOR, cold=True, warm_ups=(0.01, 0.01, 0.97, 0.01))
    early = Reading("estimate", 1200.0, seconds=30.0, age=15.0)
    late = Reading("estimate", 1000.0, seconds=30.0, age=300.0)
    assert interval(early, late, prior=sixty)[1] == pytest.approx(1000.0, rel=0.05)


def test_the_work_that_a_scenario_asks_for_does_not_become_faster():
    """A cold system takes 10 ms for a message, of which the scenario asks for 9: it cannot become much faster."""
    readings = [Reading("estimate", 100.0, seconds=30.0, age=age) for age in (2.0, 6.0, 10.0)]
    prior = CapacityPrior(1.0, 200.0, 100.0, 0.5, cold=True)
    free, costly = (interval(*readings, prior=replace(prior, requested_s=seconds)) for seconds in (0.0, 0.009))
    assert free[2] > 130.0 > costly[2]


def test_the_speed_that_is_expected_of_a_cold_system_rises_with_its_age():
    """It is one once the system is warm, and where all of the time is work that the scenario asks for."""
    young, older, old = (Reading("estimate", 100.0, seconds=5.0, age=age) for age in (2.0, 30.0, 300.0))
    assert COLD_SHARE < expected_speed(young, (), 0.0) < expected_speed(older, (), 0.0) < expected_speed(old, (), 0.0)
    assert expected_speed(old, (), 0.0) == pytest.approx(expected_speed(young, (), 0.01)) == pytest.approx(1.0)


def test_the_warm_up_shows_in_trials_of_different_ages():
    """Twice as old a system was 1.2 times as fast: it was still becoming faster, and ends above both."""
    readings = [Reading("estimate", hz, seconds=60.0, age=age) for hz, age in ((700.0, 20.0), (900.0, 80.0))]
    posterior = capacity_posterior(CapacityPrior(1.0, 1e6, 1000.0, 0.5, cold=True), readings, batches=False)
    likelihood = dict(zip(WARM_UPS_S, posterior.warm_up_likelihood, strict=True))
    assert max(likelihood.values()) == 1
    assert likelihood[150.0] > 3 * likelihood[0.0]
    assert likelihood[0.0] == likelihood[20.0]  # which was over before the first trial
    assert posterior.interval(1.0)[2] > 1000.0


def test_the_cells_of_a_system_share_its_warm_up():
    """Their evidence adds up; no time gets the probability 0, and without evidence it is as of any cold system."""
    assert pool_warm_ups([]) == pytest.approx(COLD_WEIGHTS)
    one, three = (pool_warm_ups([(0.3, 0.3, 1.0, 0.7)] * count) for count in (1, 3))
    assert one[2] < three[2]
    assert 0 < three[0] < one[0]
    assert sum(three) == pytest.approx(1.0, abs=1e-5)


def test_a_trial_of_old_age_shows_a_warm_system():
    """After five minutes of load nothing is left of the warm-up."""
    prior = CapacityPrior(1.0, 1e6, 1000.0, 0.5, cold=True)
    old = capacity_posterior(prior, [Reading("estimate", 1000.0, seconds=60.0, age=300.0)], batches=False)
    assert old.warming == 0.0
    assert old.interval(1.0)[2] < 1300.0


def test_the_quantiles_are_ordered():
    """Low, median and high of any posterior are in order."""
    low, middle, high = interval(Reading("at least", 10.0), Reading("at most", 1e5))
    assert low < middle < high
