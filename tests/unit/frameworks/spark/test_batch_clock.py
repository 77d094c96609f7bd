"""Micro-batches begin by this process's clock, and their times add up to Spark's own."""

import pytest

from frameworks.spark.batch_clock import BatchClock

EPOCH = 1.7e9
"""Seconds by which the time of day is ahead of the monotonic clock."""


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("frameworks.spark.batch_clock.epoch", lambda: EPOCH)
    return BatchClock()


def ms(seconds):
    """Return monotonic seconds as Spark's milliseconds of the day."""
    return round(1000 * (EPOCH + seconds))


def test_the_first_batch_begins_when_it_is_planned(clock):
    """There is no commit before it."""
    assert clock.begin(ms(10.0), None) == pytest.approx(10.0)


def test_a_batch_begins_earlier_by_the_commit_before_it(clock):
    """A result at 10.4 s, committed at 10.45 s: the next batch, planned at 11 s, is charged with 50 ms."""
    clock.end(10.4)
    assert clock.begin(ms(11.0), ms(10.45)) == pytest.approx(10.95)


def test_batches_without_a_pause_follow_one_another_exactly(clock):
    """The next one is planned as soon as the commit is over: its begin is the result before it."""
    clock.end(10.4)
    assert clock.begin(ms(10.45), ms(10.45)) == pytest.approx(10.4)


def test_a_commit_that_is_not_known_is_that_of_the_batch_before(clock):
    """Spark may not have said it yet."""
    clock.end(10.4)
    clock.begin(ms(11.0), ms(10.45))
    clock.end(11.4)
    assert clock.begin(ms(12.0), None) == pytest.approx(11.95)


def test_a_batch_does_not_begin_before_the_result_of_the_one_before(clock):
    """Not even if the time of day was set back."""
    clock.end(10.4)
    assert clock.begin(ms(9.0), ms(8.0)) == 10.4
