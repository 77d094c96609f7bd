"""Due times follow from the rate alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.schedule import Constant, schedule_of


@given(rate=st.floats(0.1, 1e6), elapsed=st.floats(0, 50))
def test_the_count_agrees_with_the_due_times(rate, elapsed):
    """What is counted as due by a moment is due by it, and the next is not."""
    schedule = Constant(rate, 100)
    count = schedule.count(elapsed)
    due = schedule.due(max(0, count - 1), count + 1)
    assert all(time <= elapsed + 1e-9 for time in due[:-1])
    assert due[-1] > elapsed - 1e-9


def test_nothing_is_due_after_the_end():
    """Ten seconds at five a second are fifty messages."""
    assert Constant(5, 10).count(1e9) == 50


def test_nothing_is_due_before_the_start():
    """Time before the first due time counts nothing."""
    assert Constant(5, 10).count(-3) == 0


def test_an_unknown_schedule_is_refused_by_name():
    """The message says which there are."""
    with pytest.raises(ValueError, match="'fractal' is not a schedule; known: constant"):
        schedule_of("fractal", 1, 1)
