"""The one judge of the backlog: an overload shows its loss, batches keep their interval, and verdicts agree with it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.analysis.stability import assess_stability
from bench.analysis.verdict import Rules, judge
from bench.model.measurement import Batches, PlannedTrial, Series
from bench.simulation.capacity import Traits
from bench.simulation.faults import Faults
from bench.simulation.fluid import Fluid
from bench.simulation.micro_batches import MicroBatches

CALM = Traits(1000.0, noise=0.005, pause_gap=0.0, warm_up=0.0)
PULL = replace(CALM, batch_interval=1.0, reader="pull", fixed_cost=0.4)
RECEIVER = replace(PULL, reader="receiver", fixed_cost=0.2)


def trial(rate, traits=CALM, window=60.0, settle=None, **faults):
    """Return a trial at that rate of a simulated system."""
    settle = max(1.0, 2 * traits.batch_interval, 1.2 * traits.latency) if settle is None else settle
    system = MicroBatches(traits, 1) if traits.reader else Fluid(traits, Faults(**faults), 1)
    return system.run_trial(PlannedTrial(0, rate, settle, window, "search"), 30.0)


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
    twice = replace(measurement.series, processed=[2 * count for count in measurement.series.processed])
    assert assess_stability(replace(measurement, series=twice)).inconsistent


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


# --- batches


@pytest.mark.parametrize("share", [1.2, 1.5], ids=["20 % above", "50 % above"])
@pytest.mark.parametrize("window", [4.0, 6.2, 15.0])
@pytest.mark.parametrize("traits", [PULL, RECEIVER], ids=["pull", "receiver"])
@pytest.mark.parametrize("reported", [True, False], ids=["batches", "counters"])
def test_an_overload_is_never_sustained_in_a_short_window(traits, window, share, reported):
    """D1: batches that stretch go on after the load, and a window of four of them is too short to be sustained."""
    traits = replace(traits, reports_batches=reported)
    measurement = trial(share * traits.truth, traits, window=window)
    assert judge(measurement, Rules()).word != "sustained"


@pytest.mark.parametrize("window", [15.0, 60.0, 300.0])
def test_batches_that_outgrow_their_interval_are_overload_in_any_window(window):
    """D3: at 1.1 times the rate that keeps the interval a pull engine finds an equilibrium with longer batches."""
    stability = assess_stability(trial(1.1 * PULL.truth, PULL, window=window))
    assert stability.overloaded
    assert not assess_stability(trial(0.95 * PULL.truth, PULL, window=window)).overloaded


def test_batches_may_grow_where_the_objective_allows_it():
    """The same trial is sustained if batches need not keep their interval."""
    assert not assess_stability(trial(1.1 * PULL.truth, PULL), keep_interval=False).overloaded


def test_a_window_of_few_batches_is_too_short():
    """Four completed batches do not show that a rate is sustained."""
    traits = replace(CALM, batch_interval=1.0)
    assert assess_stability(trial(900.0, traits, window=4.0)).too_short
    assert not assess_stability(trial(900.0, traits, window=6.2)).too_short


def test_random_arrivals_that_were_fewer_are_no_slow_drain():
    """The load ends with the window, however many messages were due until then."""
    measurement = trial(400.0, PULL)
    planned = replace(measurement.planned, rate=1.06 * 400)
    assert not assess_stability(replace(measurement, planned=planned)).overloaded


def test_a_pause_is_no_growth_of_batches():
    """One batch that takes two intervals does not make the others late."""
    measurement = trial(900.0, replace(CALM, batch_interval=1.0), window=20.0)
    held = [
        count if not 10.0 <= at < 11.0 else None
        for at, count in zip(measurement.series.at, measurement.series.processed, strict=True)
    ]
    last, processed = 0, []
    for count in held:
        last = last if count is None else count
        processed.append(last)
    paused = replace(measurement, series=replace(measurement.series, processed=processed))
    assert not assess_stability(paused).overloaded


# --- verdicts and the judge


@settings(max_examples=60, deadline=None)
@given(
    share=st.floats(0.3, 3.0),
    window=st.floats(0.5, 40.0),
    settle=st.floats(0.0, 3.0),
    interval=st.sampled_from([0.0, 1.0, 2.0]),
    reader=st.sampled_from(["", "pull", "receiver"]),
    reported=st.booleans(),
    growing=st.booleans(),
    noise=st.sampled_from([0.0, 0.1]),
)
def test_a_verdict_never_contradicts_the_judge(share, window, settle, interval, reader, reported, growing, noise):
    """Overloaded or too short is never sustained, and an overload by the backlog is one by the judge."""
    reader = reader if interval else ""
    traits = Traits(
        1000.0, batch_interval=interval, reader=reader, fixed_cost=0.3 * interval if reader else 0.0,
        reports_batches=reported, noise=noise, warm_up=0.0,
    )  # fmt: skip
    measurement = trial(share * traits.truth, traits, window=round(window, 1), settle=round(settle, 1))
    rules = Rules(objectives=replace(Rules().objectives, batches="grow" if growing else "keep"))
    stability = assess_stability(measurement, rules.precision, keep_interval=not growing)
    verdict = judge(measurement, rules)
    if stability.overloaded or stability.too_short or stability.inconsistent:
        assert verdict.word != "sustained"
    if verdict.word == "overloaded" and verdict.why in ("backlog grew", "batches grew"):
        assert stability.overloaded


@pytest.mark.parametrize(("share", "overloaded"), [(0.95, False), (1.15, True), (1.3, True)])
def test_light_batches_do_not_hide_a_receiver_that_is_too_slow(share, overloaded):
    """The messages that batches leave behind as they begin grow by less than one interval's messages, but steadily."""
    capacity = replace(RECEIVER, intake=0.4)
    measurement = trial(share * 400, capacity, window=6.0)
    stability = assess_stability(measurement)
    assert stability.overloaded is overloaded
    if overloaded:
        assert stability.loss == pytest.approx(1 - 1 / share, abs=0.05)


def test_batches_without_messages_do_not_count():
    """Empty batches show no time for a message."""
    measurement = trial(900.0, replace(CALM, batch_interval=1.0))
    empty = replace(measurement, batches=Batches([float(i) for i in range(60)], [i + 0.9 for i in range(60)], [0] * 60))
    assert assess_stability(empty) == assess_stability(measurement)
