"""What workers have counted becomes the samples that policies read."""

import pytest

from bench.elasticity.live_samples import OPERATOR, SOURCE, Offered, WorkerCounters, WorkerMeter


def counters(worker="a", at=0.0, processed=0, useful_s=0.0):
    return WorkerCounters(worker, at, processed, useful_s)


def test_a_sample_is_what_was_counted_since_the_one_before():
    """Records and useful time of each worker, and the load."""
    meter = WorkerMeter([counters(processed=7, useful_s=1.0)])
    meter.sample([counters(at=5, processed=17, useful_s=2.0)], Offered(2.0, 0), at=5, seconds=5)
    sample = meter.sample([counters(at=10, processed=47, useful_s=5.0)], Offered(6.0, 0), at=10, seconds=5)
    assert [(one.processed, one.useful_s) for one in sample.operators[OPERATOR]] == [(30.0, 3.0)]
    assert (sample.offered[SOURCE], sample.taken[SOURCE], sample.target_rate_ratio) == (6.0, 6.0, 1.0)


def test_counts_are_scaled_to_the_interval():
    """A worker that counted over 4 s of an interval of 5 s was as busy in the rest."""
    meter = WorkerMeter([counters(at=1)])
    sample = meter.sample([counters(at=5, processed=40, useful_s=2.0)], Offered(10.0, 0), at=5, seconds=5)
    assert sample.operators[OPERATOR][0].processed == pytest.approx(50)
    assert sample.busy(OPERATOR) == pytest.approx(0.5)


def test_a_new_worker_counts_from_its_start_and_one_that_is_gone_does_not():
    """The instances of a sample are the workers at its end."""
    meter = WorkerMeter([counters("a"), counters("b")])
    now = [counters("b", 5, 10, 1.0), counters("c", 5, 20, 2.0)]
    sample = meter.sample(now, Offered(6.0, 0), at=5, seconds=5)
    assert [one.processed for one in sample.operators[OPERATOR]] == [10.0, 20.0]


def test_a_worker_that_counted_nothing_new_processed_nothing():
    """Its heartbeat is late; the next sample has what this one lacks."""
    meter = WorkerMeter([counters(at=1, processed=5)])
    sample = meter.sample([counters(at=1, processed=5)], Offered(6.0, 0), at=5, seconds=5)
    assert sample.operators[OPERATOR][0].processed == 0


def test_what_waits_was_not_taken_and_is_back_pressure():
    """Of 100 messages 20 wait: the sources would have stopped for a fifth of the time."""
    meter = WorkerMeter([counters()])
    sample = meter.sample([counters(at=10, processed=80, useful_s=10.0)], Offered(10.0, 20), at=10, seconds=10)
    assert sample.taken[SOURCE] == pytest.approx(8.0)
    assert sample.operators[OPERATOR][0].backpressure_s == pytest.approx(2.0)
    later = meter.sample([counters(at=20, processed=200, useful_s=20.0)], Offered(10.0, 0), at=20, seconds=10)
    assert later.taken[SOURCE] == pytest.approx(12.0)
