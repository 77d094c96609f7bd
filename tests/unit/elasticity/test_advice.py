"""Advice follows from the cells of a map: the workers for a rate with their range, and what was extrapolated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.elasticity.advice import Advice, Amount, Deployed, Question, advise, cheapest_first
from bench.elasticity.cell_rates import rates_at
from bench.model.measurement import Bound, Result
from bench.model.message_sizes import MessageSize

TWO = Deployed(workers=2, cores=2, setting="settings.x.processes")


def cell(size=100, cost=0.01, low=90.0, estimate=100.0, high=125.0, **more):
    """Return a measured cell that two busy cores limit."""
    fields = {"status": "measured", "interval": "95 %", "limited_by": "cpu"} | more
    rates = {"estimate_hz": estimate, "low_hz": low, "high_hz": high}
    cpu = {"cpu_share": {"framework": 1.5, "source": 0.3, "load": 0.1}}
    return Result("x/s", "x", "s", size, cost, **(rates | cpu | fields))


def lower_bound(size=100, cost=0.01, low=90.0):
    return cell(size, cost, low, None, None, status="lower-bound", reason="generator", limited_by="generator")


def ask(rate, *results, size=100, cost=0.01, headroom=0.0, deployed=TWO):
    return advise(Question(rate, size, cost, headroom), results, deployed)


# --- workers and cores


def test_the_range_of_workers_follows_from_the_interval_of_the_rate():
    """450/s at 45 to 62.5/s for each worker: 10 are enough, 8 are needed."""
    found = ask(450.0, cell())
    assert (found.workers, found.cores) == (Amount(10, 8), Amount(10, 8))
    assert found.extrapolated == ("cores",)
    assert (found.low_hz, found.estimate_hz, found.high_hz) == pytest.approx((90.0, 100.0, 125.0))


def test_headroom_is_a_share_of_the_capacity():
    """With 20 % free, 360/s need a maximum of 450/s."""
    assert ask(360.0, cell(), headroom=0.2).workers == Amount(10, 8)


def test_the_measured_deployment_is_not_extrapolated():
    """Where it sustains a rate that needs fewer workers, both are said."""
    assert ask(90.0, cell()).extrapolated == ()
    fewer = ask(40.0, cell())
    assert (fewer.workers, fewer.extrapolated) == (Amount(1, 1), ("cores",))
    assert "the 2 measured workers sustain it" in fewer.notes[0]


@given(rate=st.floats(1, 1e5), more=st.floats(1, 10), low=st.floats(10, 1e4), width=st.floats(1, 3))
def test_a_higher_rate_never_needs_fewer_workers(rate, more, low, width):
    """And the range is in order."""
    one = cell(cost=0.0, low=low, estimate=low * width**0.5, high=low * width)
    before, after = (ask(hz, one, cost=0.0) for hz in (rate, rate * more))
    assert before.workers.least <= before.workers.enough
    assert before.workers.enough <= after.workers.enough
    assert before.cores.enough <= after.cores.enough


@pytest.mark.parametrize(
    ("workers", "cores", "used", "advised"),
    [(2, 2, 1.3, 10), (1, 2, 1.3, 7), (8, 2, 2.0, 10), (1, 8, None, 40)],
    ids=["one core each", "one worker that used more", "more workers than cores", "not known"],
)
def test_cores_hold_everything_that_ran_on_them(workers, cores, used, advised):
    """450/s at 90/s for each deployment: five times its workers, at one core each or what was used."""
    share = {"framework": used and used - 0.3, "source": 0.2, "load": 0.1}
    found = ask(450.0, cell(cpu_share=share), deployed=replace(TWO, workers=workers, cores=cores))
    assert (found.workers.enough, found.cores.enough) == (5 * workers, advised)


# --- bounds and cells without an answer


def test_a_lower_bound_says_at_most_so_many_workers():
    """The load generator was the limit; no number of workers is known to be needed."""
    found = ask(450.0, lower_bound())
    assert (found.workers, found.cores) == (Amount(10, None), Amount(10, None))
    assert "lower bound: the load generator could not send more" in found.notes[0]
    assert not any("may not help" in note for note in found.notes)


def test_an_upper_bound_says_at_least_so_many_workers():
    """No rate was sustained, so that no number is known to be enough."""
    found = ask(450.0, cell(low=None, estimate=None, status="upper-bound", reason="floor"))
    assert found.workers == Amount(None, 8)
    assert "upper bound" in found.notes[0]


@pytest.mark.parametrize("status", ["unsupported", "failed", "not-measured"])
def test_a_cell_without_an_answer_is_named_with_its_reason(status):
    """There is no advice then."""
    found = ask(450.0, cell(low=None, estimate=None, high=None, status=status, reason="lines only"))
    assert found.reason == f"100 B, 10 ms: {status} (lines only)"
    assert found.workers == Amount()


def test_a_bracket_and_trials_that_contradict_each_other_are_named():
    """The numbers are given all the same."""
    assert "bracket" in ask(450.0, cell(interval="bracket")).notes[0]
    assert "contradict" in ask(450.0, cell(status="unstable")).notes[0]


def test_a_cell_that_is_missing_is_named():
    """Between two cells both are needed."""
    found = ask(450.0, cell(100), cell(1000, status="failed", reason="died"), size=500)
    assert found.reason == "1 kB, 10 ms: failed (died)"
    assert "10 ms: no result" in ask(1.0, cell(100, 0.01), cell(1000, 0.1), size=1000, cost=0.01).reason


# --- what does not grow with the workers


def test_the_network_is_a_limit_for_any_number_of_workers():
    """At 100 kB/s of 1 kB each."""
    linked = replace(TWO, link=1e5)
    assert "carries 100 /s of this size" in ask(101.0, cell(1000), size=1000, deployed=linked).reason
    assert ask(99.0, cell(1000), size=1000, deployed=linked).reason == ""


def test_a_soft_bound_of_the_source_is_a_note():
    """Scaled to the size that was asked for."""
    bounded = cell(1000, soft_bounds=(Bound("disk", 400.0, hard=False),))
    assert "more than the disk of the source carries for long (400 /s)" in ask(450.0, bounded, size=1000).notes
    assert not any("disk" in note for note in ask(350.0, bounded, size=1000).notes)
    assert any("(200 /s)" in note for note in ask(350.0, bounded, size=2000).notes)


@pytest.mark.parametrize(
    ("limit", "said"),
    [("source", "the source pushed back: more workers may not help"), (None, "not known what limited it"), ("cpu", "")],
)
def test_more_workers_are_doubted_where_the_cores_were_not_the_limit(limit, said):
    """The note is on what would have to grow."""
    notes = " ".join(ask(450.0, cell(cost=0.0, limited_by=limit), cost=0.0).notes)
    assert said in notes
    assert ("may not help" in notes) == (limit != "cpu")


def test_the_part_that_surely_grows_is_named():
    """100/s at 10 ms are half of the time of two cores."""
    assert ask(450.0, cell()).notes == (
        "50% of the cores' time was the messages' own cost; the rest is assumed to grow as well",
    )


@pytest.mark.parametrize(
    ("rate", "workers", "reason"),
    [
        (80.0, Amount(1, 1), ""),
        (100.0, Amount(), "it is not certain that it takes 100 /s; 90 /s are certain"),
        (130.0, Amount(), "it takes 125 /s at most, and no setting gives it more workers"),
    ],
)
def test_a_framework_whose_workers_cannot_be_set_is_taken_as_it_is(rate, workers, reason):
    """It sustains the rate, or does not."""
    found = ask(rate, cell(), deployed=Deployed(1, 2))
    assert found.workers == workers
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)


# --- between cells and beyond them


def test_between_cells_the_time_of_a_message_is_interpolated():
    """Half way from 10 ms to 30 ms for a message: 20 ms."""
    near = cell(100, low=100.0, estimate=100.0, high=100.0)
    far = cell(1100, low=100 / 3, estimate=100 / 3, high=100 / 3)
    rates = rates_at([near, far], 600, 0.01, 2)
    assert (rates.low_hz, rates.estimate_hz, rates.high_hz) == pytest.approx((50.0, 50.0, 50.0))
    assert (rates.interpolated, rates.extrapolated) == (("size",), ())


def test_between_four_cells_both_axes_are_interpolated():
    """A fixed time, a time a byte and the cost are found exactly."""
    corners = [
        cell(size, cost, low=hz, estimate=hz, high=hz)
        for size in (100, 10_000)
        for cost in (0.0, 0.01)
        for hz in [1 / (1e-3 + 1e-7 * size + cost / 2)]
    ]
    rates = rates_at(corners, 5_000, 0.002, 2)
    assert rates.estimate_hz == pytest.approx(1 / (1e-3 + 5e-4 + 0.001))
    assert rates.interpolated == ("size", "cost")


def test_a_cost_that_idle_cores_can_spend_takes_no_rate():
    """What limits 1,050 messages/s of 100 us on two cores need not be their cost; 1 ms allows 2,000/s."""
    limited = cell(cost=1e-4, low=950.0, estimate=1000.0, high=1050.0)
    assert rates_at([limited], 100, 1e-3, 2).high_hz == pytest.approx(1050.0)
    assert rates_at([limited], 100, 1e-2, 2).high_hz == pytest.approx(200.0)


@pytest.mark.parametrize(
    ("size", "cost", "low", "high", "axis"),
    [
        (200, 0.01, 45.0, 125.0, "size"),
        (50, 0.01, 90.0, 200.0, "size"),
        (100, 0.02, 45.0, 100.0, "cost"),
        (100, 0.005, 90.0, 250.0, "cost"),
    ],
    ids=["larger", "smaller", "costlier", "cheaper"],
)
def test_beyond_the_cells_the_rate_is_a_range_without_an_estimate(size, cost, low, high, axis):
    """A message k times as large takes one to k times as long; what it costs more is spent on all cores at best."""
    rates = rates_at([cell()], size, cost, 2)
    assert (rates.low_hz, rates.estimate_hz, rates.high_hz) == (pytest.approx(low), None, pytest.approx(high))
    assert (rates.interpolated, rates.extrapolated) == ((), (axis,))


def test_from_messages_without_a_cost_only_a_bound_follows():
    """Which share of the cores a cost gets has not been measured."""
    found = ask(450.0, cell(cost=0.0), cost=0.01)
    assert found.workers == Amount(None, 8)
    assert rates_at([cell()], 100, 0.0, 2).high_hz is None


# --- the order


def test_the_cheapest_system_comes_first():
    """By what is enough; then those of which only the least is known, then those without advice."""
    found = [
        Advice(system="none", reason="failed"),
        Advice(system="least", workers=Amount(None, 1), cores=Amount(None, 1)),
        Advice(system="dear", workers=Amount(8, 6), cores=Amount(8, 6)),
        Advice(system="cheap", workers=Amount(9, 6), cores=Amount(4, 2)),
        Advice(system="throttled", workers=Amount(9, 6)),
    ]
    assert [each.system for each in cheapest_first(found)] == ["cheap", "dear", "least", "throttled", "none"]


def test_a_point_of_which_nothing_follows_has_no_advice():
    """The cell is a lower bound, and no cell has a cost."""
    assert ask(450.0, lower_bound(cost=0.0), cost=0.01).reason == "the map has no limit of its rate at this point"


def test_sizes_that_differ_are_named():
    """The cell stands at their mean."""
    mixed = MessageSize.read({"choice": {"100 B": "50 %", "300 B": "50 %"}}).sizes
    assert (
        "the sizes at mean 200 B, 10 ms differ around their mean" in ask(450.0, cell(200, sizes=mixed), size=200).notes
    )
