"""The two-counter search finds a known capacity, or gives the reason why it did not, and can be resumed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.analysis.stability import assess_stability
from bench.analysis.verdict import Rules, Verdict, judge
from bench.model.measurement import PlannedTrial, Series
from bench.search.bracketing import Bracketing
from bench.search.observations import Observations
from bench.search.parameters import SearchParameters
from bench.search.planning import plan_next
from bench.search.posterior import Observation, Posterior, Prior
from bench.search.two_counter import TwoCounter
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case, run_search
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid

PRIOR = Prior(1000.0, 0.35, 1.0, 1e6)
CALM = Traits(1000.0, noise=0.005, pause_gap=0.0, warm_up=0.0)


def trial(rate, traits=CALM, window=60.0, **faults):
    """Return a trial at that rate of a simulated system; it settles until its first messages are processed."""
    settle = max(1.0, 2 * traits.batch_interval, 1.2 * traits.latency)
    return Fluid(traits, Faults(**faults), 1).run_trial(PlannedTrial(0, rate, settle, window, "search"), 30.0)


def searched(case, seed=0):
    """Return every state of a search with its next trial, from the first to the last."""
    system, rules = Fluid(case.traits, case.faults, seed), Rules(precision=case.precision)
    states, search = [], TwoCounter(case.problem)
    while (planned := search.next_trial()) is not None:
        states.append((search, planned))
        measurement = system.run_trial(planned, 30.0)
        search = search.after(measurement, judge(measurement, rules))
        if not (measurement.drained and measurement.lost == 0):
            system.restart()
    return [*states, (search, None)]


# --- the stability of a system in a trial


@pytest.mark.parametrize("interval", [0.0, 1.0, 5.0], ids=["continuous", "batch 1 s", "batch 5 s"])
@pytest.mark.parametrize("loss", [0.03, 0.1, 0.2])
def test_an_overloaded_trial_shows_its_loss(interval, loss):
    """The loss is the drift of the backlog as a share of the rate."""
    stability = assess_stability(trial(1000 / (1 - loss), replace(CALM, batch_interval=interval), window=75.0))
    assert stability.overloaded
    assert stability.loss == pytest.approx(loss, abs=0.015)


@pytest.mark.parametrize("interval", [0.0, 1.0, 5.0], ids=["continuous", "batch 1 s", "batch 5 s"])
def test_a_rate_below_the_capacity_is_sustained(interval):
    """The messages of a batch in flight are no overload."""
    assert not assess_stability(trial(900.0, replace(CALM, batch_interval=interval), window=75.0)).overloaded


def test_messages_in_flight_are_no_overload():
    """By Little's law 900/s with a latency of 8 s are 7,200 messages in flight."""
    assert not assess_stability(trial(900.0, replace(CALM, latency=8.0))).overloaded


@pytest.mark.parametrize("wrong", ["processed", "at"])
def test_a_counter_that_runs_backwards_is_inconsistent(wrong):
    """A trial whose time or processed counter decreases is not assessed."""
    measurement = trial(900.0)
    column = list(getattr(measurement.series, wrong))
    column[300:] = [value - column[299] / 2 for value in column[300:]]
    assert assess_stability(replace(measurement, series=replace(measurement.series, **{wrong: column}))).inconsistent


def test_more_processed_than_due_is_inconsistent():
    """A counter that counts twice contradicts the due times."""
    measurement = trial(900.0)
    assert assess_stability(
        replace(
            measurement,
            series=replace(measurement.series, processed=[2 * count for count in measurement.series.processed]),
        )
    ).inconsistent


@pytest.mark.parametrize(("rate", "overloaded"), [(100.0, True), (0.06, False)], ids=["much waits", "a message waits"])
def test_a_counter_that_never_moves_is_assessed_by_its_backlog(rate, overloaded):
    """With too few samples for a drift, over half of the messages must wait for an overload."""
    measurement = trial(rate, replace(CALM, batch_interval=5.0), window=20.0)
    still = replace(measurement, series=replace(measurement.series, processed=[0] * len(measurement.series.at)))
    assert assess_stability(still).overloaded is overloaded


def test_a_batch_that_never_ends_is_overload():
    """The backlog is also sampled after the last batch if the counter stands still."""
    measurement = trial(900.0, replace(CALM, batch_interval=1.0))
    processed = [min(count, 20_000) for count in measurement.series.processed]
    assert assess_stability(replace(measurement, series=replace(measurement.series, processed=processed))).overloaded


def test_a_trial_without_a_series_is_not_overloaded():
    """Without rows there is no backlog to assess."""
    assert not assess_stability(replace(trial(900.0), series=Series())).overloaded


# --- posterior and observations


def test_estimates_narrow_the_posterior_around_the_capacity():
    """Three estimates of a minute each give an interval of about 20 %."""
    posterior = Posterior.of(PRIOR, [Observation("estimate", rate, 60.0) for rate in (980, 1000, 1020)])
    low, middle, high = posterior.quantiles(0.025, 0.5, 0.975)
    assert 900 < low < 980 < middle < 1020 < high < 1100


def test_an_outlier_cannot_exclude_the_capacity():
    """One estimate of a tenth among four that agree does not move the median."""
    rates = (1000, 100, 1000, 1000, 1000)
    posterior = Posterior.of(PRIOR, [Observation("estimate", rate, 60.0) for rate in rates])
    assert posterior.quantiles(0.5)[0] == pytest.approx(1000, rel=0.02)


@pytest.mark.parametrize(("kind", "side"), [("at least", 1), ("at most", -1)])
def test_a_bound_moves_the_posterior_to_its_side(kind, side):
    """A lower bound raises the median, an upper bound lowers it."""
    before, after = (
        Posterior.of(PRIOR, measurement).quantiles(0.5)[0] for measurement in ((), [Observation(kind, 1000.0, 60.0)])
    )
    assert (after - before) * side > 0


def test_spread_between_slices_is_noise():
    """A trial whose slices differ shows a larger noise."""
    calm, wild = (
        Posterior.of(PRIOR, [Observation("estimate", 1000.0, 60.0, slices, 10.0)])
        for slices in ((990, 1000, 1010, 1000), (700, 1300, 600, 1400))
    )
    assert wild.noise > 4 * calm.noise


@pytest.mark.parametrize("rate", [30.0, 60_000.0], ids=["far below", "far above"])
def test_the_grid_moves_to_a_capacity_beyond_it(rate):
    """Estimates beyond the grid overrule a wrong centre."""
    observations = Observations.of(PRIOR)
    for _ in range(8):
        observations = observations.add(Observation("estimate", rate, 60.0))
    assert observations.quantiles(0.5)[0] == pytest.approx(rate, rel=0.02)


def test_estimates_are_upper_bounds_once_an_objective_was_broken():
    """A rate that breaks a latency objective lies below the capacity that the backlog shows."""
    observations = (
        Observations.of(PRIOR).add(Observation("estimate", 1000.0, 60.0)).add(Observation("at most", 600.0, 60.0))
    )
    assert observations.add(Observation("at least", 500.0, 60.0)).quantiles(0.5)[0] < 650


def test_trials_that_exclude_each_other_have_an_outlier():
    """A sustained trial at 1000 and an estimate of 1010 leave the estimate of 600 as the outlier."""
    observations = Observations.of(PRIOR)
    for kind, rate in (("at least", 1000.0), ("estimate", 600.0), ("estimate", 1010.0)):
        observations = observations.add(Observation(kind, rate, 60.0))
    assert observations.count_outliers(5.0) == 1


# --- bracketing


def test_a_clear_overload_ends_bracketing():
    """A sustained rate of 4/s and a loss of half at 16/s give about 8/s."""
    bracketing = (
        Bracketing(4.0, 1.0, 1e6)
        .add_probe(0.0, SearchParameters(), aborted=False)
        .add_probe(0.5, SearchParameters(), aborted=False)
    )
    assert bracketing.centre == pytest.approx(8.0)


def test_a_slight_overload_is_tried_again():
    """A probe with a loss of a tenth is repeated before it is believed."""
    once = Bracketing(16.0, 1.0, 1e6, sustained=4.0).add_probe(0.1, SearchParameters(), aborted=False)
    assert (once.rate, once.centre) == (16.0, None)
    assert once.add_probe(0.1, SearchParameters(), aborted=False).centre == pytest.approx(14.4)


def test_an_overload_without_an_estimate_is_bracketed():
    """The centre lies between 4/s, at which latency was met, and 16/s, at which it was not."""
    bracketing = (
        Bracketing(16.0, 1.0, 1e6, sustained=4.0)
        .add_probe(None, SearchParameters(), aborted=False)
        .add_probe(None, SearchParameters(), aborted=False)
    )
    assert bracketing.centre == pytest.approx(8.0)


def test_bracketing_goes_down_from_a_start_far_above_the_capacity():
    """The rate falls to a quarter, but not below the lowest rate."""
    bracketing = Bracketing(3.0, 1.0, 1e6).add_probe(0.99, SearchParameters(), aborted=False)
    assert bracketing.rate == 1.0
    assert bracketing.add_probe(0.0, SearchParameters(), aborted=False).centre == pytest.approx(3**0.5)


# --- the search


@settings(max_examples=15)
@given(capacity=st.floats(0.5, 500_000), cut=st.integers(0, 30), interval=st.sampled_from([0.0, 1.0]))
def test_the_same_steps_give_the_same_plan(capacity, cut, interval):
    """A search that receives the trials of an interrupted one plans the same next trial."""
    states = searched(Case("any", Traits(capacity, batch_interval=interval), lowest=0.1))
    cut = min(cut, len(states) - 1)
    system, again = Fluid(Traits(capacity, batch_interval=interval), Faults(), 0), TwoCounter(states[0][0].problem)
    for _, planned in states[:cut]:
        measurement = system.run_trial(planned, 30.0)
        again = again.after(measurement, judge(measurement, Rules(precision=0.1)))
        if not (measurement.drained and measurement.lost == 0):
            system.restart()
    assert again.next_trial() == states[cut][1]


@settings(max_examples=15)
@given(exponent=st.floats(np.log(0.5), np.log(500_000)))
def test_the_estimate_is_near_the_capacity(exponent):
    """For any capacity the cell is measured with an error below 8 %."""
    outcome = run_search(Case("any", Traits(float(np.exp(exponent))), lowest=0.1), 1, TwoCounter)
    assert outcome.result.status == "measured"
    assert abs(outcome.error) < 0.08
    assert outcome.result.low_hz < outcome.result.confirmed_hz < outcome.result.high_hz


def test_a_sustained_probe_is_a_bound_less_its_allowed_loss():
    """A sustained probe may have a loss of 8 %, which the lower bound allows for."""
    outcome = run_search(Case("short", Traits(20_000.0), budget=5.0), 1, TwoCounter)
    probed = max(planned.rate for _, planned in searched(Case("short", Traits(20_000.0), budget=5.0), 1) if planned)
    assert outcome.result.status == "lower-bound"
    assert outcome.result.low_hz <= 0.92 * probed + 1e-9


@pytest.mark.parametrize(
    ("budget", "stage"), [(30.0, "bracketing"), (3000.0, "highest rate")], ids=["low budget", "with time"]
)
def test_a_short_search_does_not_begin_far_above_its_hint(budget, stage):
    """A low-budget search skips the trial at the generator's ceiling, which is its highest rate all the same."""
    state = TwoCounter(replace(Case("short", CALM, budget=budget).problem, hint_hz=1000.0, generator_hz=40_000.0)).state
    assert state.stage == stage
    assert state.highest == pytest.approx(0.95 * 40_000.0)
    assert plan_next(state).rate <= (1000.0 if stage == "bracketing" else state.highest)


@pytest.mark.parametrize("budget", [30.0, 120.0, 400.0, 1000.0])
def test_the_budget_is_kept(budget):
    """A small budget gives a wide interval or a bound."""
    outcome = run_search(Case("short", Traits(20_000.0), budget=budget, precision=0.25), 1, TwoCounter)
    assert outcome.ended
    assert outcome.seconds <= budget + 0.2
    assert outcome.result.status in ("measured", "lower-bound")


def test_slow_cells_are_given_enough_messages():
    """A trial at half a message a second lasts 300 s, a tenth of the budget."""
    states = searched(Case("slow", Traits(0.5), lowest=0.1))
    windows = [planned.window for search, planned in states if planned and search.state.stage == "trials"]
    assert max(windows) == 300.0


def test_no_rate_above_the_generators_ceiling_is_planned():
    """With a calibrated generator, one trial at 95 % of its ceiling gives the lower bound."""
    case = Case("limited", Traits(20_000.0, generator=8000.0), generator_known=0.98)
    states = searched(case)
    assert max(planned.rate for _, planned in states[:-1]) == pytest.approx(0.95 * 0.98 * 8000)
    assert (states[-1][0].result().status, states[-1][0].result().reason) == ("lower-bound", "generator")


def test_a_late_generator_is_tried_again_and_then_the_limit():
    """The unknown limit of a generator is found, and the cell is a lower bound."""
    result = run_search(Case("limited", Traits(20_000.0, generator=8000.0)), 1, TwoCounter).result
    assert (result.status, result.reason, result.limited_by) == ("lower-bound", "generator", "generator")
    assert 0.93 * 8000 <= result.confirmed_hz <= 8000


def test_a_system_that_keeps_up_at_the_end_of_the_range_is_a_lower_bound():
    """The result has the highest rate of the range and no upper end."""
    result = run_search(Case("narrow", Traits(20_000.0), highest=1000.0), 1, TwoCounter).result
    assert (result.status, result.estimate_hz, result.high_hz) == ("lower-bound", 1000.0, None)


def test_a_cold_system_is_warmed_up_after_a_restart():
    """The trial after a death is a warm-up."""
    states = searched(Case("dies", Traits(20_000.0), faults=Faults(dies_at=200.0)))
    died = next(
        i for i, (_, planned) in enumerate(states) if states[i + 1][0].steps[-1].measurement.ended == "framework died"
    )
    assert states[died + 1][1].purpose == "warm-up"


def test_three_invalid_trials_end_a_cell():
    """The cell fails with the reason of the last invalid trial."""
    search = TwoCounter(Case("any", Traits(1000.0)).problem)
    while (planned := search.next_trial()) is not None:
        search = search.after(trial(planned.rate, window=5.0), Verdict("invalid", "the load died"))
    assert (search.result().status, search.result().reason) == ("failed", "no valid trial: the load died")


def test_a_cell_beside_other_work_is_not_measured():
    """It can be visited again; nothing is wrong with the system."""
    search = TwoCounter(Case("any", Traits(1000.0)).problem)
    while (planned := search.next_trial()) is not None:
        verdict = Verdict("invalid", "other work took 20% of a machine", cause="other work")
        search = search.after(trial(planned.rate, window=5.0), verdict)
    assert search.result().status == "not-measured"


def test_a_broken_latency_objective_bounds_the_rate_from_above():
    """The estimate is the 600/s above which latency is too long, not the 1000/s of the backlog."""
    system, search = Fluid(CALM, Faults(), 1), TwoCounter(Case("p99", CALM).problem)
    while (planned := search.next_trial()) is not None:
        measurement = system.run_trial(planned, 30.0)
        late = Verdict("overloaded", "p99 3 s above 2 s") if planned.rate > 600 else Verdict("sustained")
        search = search.after(measurement, late)
    result = search.result()
    assert result.estimate_hz == pytest.approx(600, rel=0.08)
    assert result.confirmed_hz <= 600


def test_an_objective_broken_once_is_not_believed():
    """Messages repeated in a single trial do not change the result."""
    outcome = run_search(Case("once", Traits(20_000.0), faults=Faults(repeats_at=200.0)), 1, TwoCounter)
    assert outcome.result.status == "measured"
    assert abs(outcome.error) < 0.07


def test_a_neighbours_estimate_saves_time():
    """A search with a hint, which replaces bracketing, takes less than 0.8 of the time."""
    case = Case("any", Traits(20_000.0))
    cases = (case, replace(case, hint=1.1))
    alone, hinted = (np.mean([run_search(each, seed, TwoCounter).seconds for seed in range(8)]) for each in cases)
    assert hinted < 0.8 * alone


@pytest.mark.parametrize("hint", [0.1, 0.25, 4.0, 10.0])
def test_a_wrong_hint_is_overruled(hint):
    """A hint that is up to ten times too high or too low does not change the estimate."""
    outcome = run_search(Case("hinted", Traits(20_000.0), hint=hint), 1, TwoCounter)
    assert outcome.result.status == "measured"
    assert abs(outcome.error) < 0.07
