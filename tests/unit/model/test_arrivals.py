"""Due times depend only on the schedule, and the shares of several workers together are the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.model.arrivals import ConstantSchedule, PoissonSchedule, ProfiledSchedule, ScheduleShare, create_schedule

PROFILES = st.lists(st.tuples(st.floats(0.05, 3), st.floats(0.01, 10)), min_size=1, max_size=5)
KINDS = ["constant", "poisson", "bursts", "steps", "trace"]
SHAPES = {
    "bursts": ((0.2, 1.0), (0.8, 0.0)),
    "steps": ((0.5, 0.25), (0.5, 1.0)),
    "trace": ((0.1, 3.0), (0.7, 1.0), (0.2, 0.0)),
}


def schedule(kind, rate=1000.0, seconds=5.0, seed=3):
    return create_schedule(kind, rate, seconds, seed=seed, profile=SHAPES.get(kind, ()))


def agrees(schedule, elapsed):
    """Return True if the messages counted as due by a moment are due by it, and the next one is not."""
    count = schedule.count(elapsed)
    before, after = schedule.due(max(0, count - 1), count), schedule.due(count, count + 1)
    return all(before <= elapsed + 1e-9) and all(after > elapsed - 1e-9)


@given(rate=st.floats(0.1, 1e6), elapsed=st.floats(0, 50))
def test_the_count_agrees_with_the_due_times(rate, elapsed):
    """Here the rate is constant."""
    assert agrees(ConstantSchedule(rate, 100), elapsed)


@given(rate=st.floats(0.1, 1e5), elapsed=st.floats(0, 50), seed=st.integers(0, 99))
def test_the_count_agrees_with_poisson_times(rate, elapsed, seed):
    """This holds at any moment."""
    assert agrees(PoissonSchedule(rate, 30, seed), elapsed)


@given(rate=st.floats(0.1, 1e5), elapsed=st.floats(0, 50), profile=PROFILES)
def test_the_count_agrees_with_the_times_of_a_profile(rate, elapsed, profile):
    """This holds over many periods."""
    assert agrees(ProfiledSchedule(rate, 100, profile), elapsed)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(members=st.integers(1, 7), at=st.floats(0, 6))
def test_the_shares_of_workers_are_the_whole(kind, members, at):
    """Every message is in exactly one share, at its own time; the counts add up at every moment."""
    whole = schedule(kind)
    shares = [ScheduleShare(schedule(kind), member, members) for member in range(members)]
    assert sum(share.count(at) for share in shares) == whole.count(at)
    due = np.concatenate([share.due(0, share.count(9)) for share in shares])
    assert np.array_equal(np.sort(due), whole.due(0, whole.count(9)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_is_the_requested_rate(kind):
    """The mean over whole periods does not depend on the profile; Poisson counts of 100,000 differ by less than 2 %."""
    assert schedule(kind, rate=1000, seconds=100).count(100) == pytest.approx(
        100_000, rel=0.02 if kind == "poisson" else 1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_a_schedule_are_the_same_as_the_whole(kind):
    """Due times ascend, and do not depend on the range that is requested."""
    whole = schedule(kind).due(0, 4000)
    assert (np.diff(whole) >= 0).all()
    assert np.array_equal(
        np.concatenate([schedule(kind).due(i, min(4000, i + 700)) for i in range(0, 4000, 700)]), whole
    )


def test_poisson_gaps_are_exponential():
    """Their standard deviation equals their mean."""
    gaps = np.diff(PoissonSchedule(1000, 60, 5).due(0, 50_000))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_another_seed_is_another_schedule():
    """The same seed gives the same schedule."""
    first, same, other = (PoissonSchedule(100, 10, seed).due(0, 500) for seed in (1, 1, 2))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_bursts_leave_the_rest_of_a_period_empty():
    """A burst has five times the rate and lasts for a fifth of the period."""
    due = schedule("bursts").due(0, 5000)
    assert ((due % 1.0) <= 0.2 + 1e-9).all()


def test_nothing_is_due_after_the_end():
    """Ten seconds at 5 messages/s are fifty messages."""
    assert ConstantSchedule(5, 10).count(1e9) == 50


def test_nothing_is_due_before_the_start():
    """The count is 0 before the first due time."""
    assert [schedule(kind).count(-3) for kind in KINDS] == [0] * 5


def test_an_unknown_schedule_is_refused_by_name():
    """The error message names the schedules that exist."""
    with pytest.raises(ValueError, match="'fractal' is not a schedule; known: constant"):
        create_schedule("fractal", 1, 1)
