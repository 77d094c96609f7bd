"""Histograms have HdrHistogram's layout: a quantile is within one percent, and adding two is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from bench.analysis.histogram import (
    Histogram,
    HistogramsPerSecond,
    hgrm_text,
    histogram_of,
    percentiles,
    shift_sparse,
    sparse_of,
)
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.load_spec import LoadSpec
from bench.workload.open_loop import OpenLoopSender, run_load
from bench.workload.processing import MessageProcessor

durations = st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=200)


@given(durations, st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_within_one_percent(values, share):
    """The reported duration is that of the right message, rounded up by less than 1 % (or 1 µs)."""
    exact = sorted(values)[max(1, int(np.ceil(share * len(values)))) - 1]
    assert histogram_with(values).quantile(share) == pytest.approx(exact, rel=0.01, abs=1.1e-6)


@given(durations, durations)
def test_adding_is_the_same_as_recording_both(one, two):
    """Histograms of several processes can be merged."""
    merged = histogram_with(one)
    merged.add(histogram_with(two).sparse())
    assert merged.sparse() == histogram_with(one + two).sparse()


@given(st.lists(st.floats(-10, 1e9), max_size=100))
def test_few_durations_are_counted_as_many_are(values):
    """Up to 32 durations are counted without a histogram, with the same result."""
    histogram = Histogram()
    histogram.record(np.array(values))
    assert sparse_of(np.array(values)) == (histogram.sparse(), histogram.negative)


@given(durations, st.floats(0, 1e4), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_shifted_durations_keep_their_precision(values, seconds, share):
    """A quantile of durations that are all longer is as exact as before, and none of them is lost."""
    shifted = Histogram()
    shifted.add(shift_sparse(histogram_with(values).sparse(), seconds))
    exact = sorted(values)[max(1, int(np.ceil(share * len(values)))) - 1] + seconds
    assert len(shifted) == len(values)
    assert shifted.quantile(share) == pytest.approx(exact, rel=0.012, abs=2.1e-6)


@given(durations)
def test_a_shift_by_nothing_changes_nothing(values):
    """A shift by 0, or by less than half a microsecond, leaves the histogram as it is."""
    sparse = histogram_with(values).sparse()
    assert shift_sparse(sparse, 0.0) == shift_sparse(sparse, 4e-7) == sparse


def test_a_shift_back_ends_at_zero():
    """Clocks of two machines may disagree by a little."""
    assert shift_sparse(histogram_with([0.001, 0.002]).sparse(), -0.01) == [(0, 2)]
    assert shift_sparse([], 1.0) == []


def test_an_empty_histogram_has_no_quantile():
    """A quantile that does not exist is None and not zero."""
    assert Histogram().quantile(0.5) is None


def test_a_negative_duration_is_counted_as_such():
    """A negative duration is impossible, so it is counted separately."""
    assert histogram_with([-0.5, 0.5]).negative == 1


def test_the_largest_duration_fits():
    """A message that waited for months does not break the histogram."""
    assert len(histogram_with([1e9])) == 1


def test_percentiles_go_as_far_as_the_count_supports():
    """Twenty messages have no 99.9th percentile."""
    shares = {
        count: [one.share for one in percentiles(histogram_of_spread(count))] for count in (5, 20, 200, 2000, 20_000)
    }
    assert shares[5] == [0.5, 1.0]
    assert shares[20] == [0.5, 0.9, 1.0]
    assert shares[200] == [0.5, 0.9, 0.99, 1.0]
    assert shares[2000][-2] == 0.999
    assert shares[20_000][-2] == 0.9999


def histogram_of_spread(count):
    return histogram_with(np.linspace(0.001, 1, count))


def histogram_with(values):
    histogram = Histogram()
    histogram.record(np.asarray(values, dtype=np.float64))
    return histogram


def test_the_interval_of_a_percentile_holds_the_true_one():
    """The interval contains the true percentile in about 95 of 100 samples of independent durations."""
    seeded = np.random.default_rng(11)
    intervals = [percentiles(histogram_with(seeded.exponential(1.0, 1000)))[1] for _ in range(400)]
    assert all(one.low <= one.value <= one.high for one in intervals)
    assert np.mean([one.low <= np.log(10) <= one.high for one in intervals]) > 0.92


def test_an_hgrm_file_ends_at_its_maximum():
    """Its lines ascend to 100 %, in milliseconds, with mean, maximum and count below."""
    lines = hgrm_text(histogram_with([0.001, 0.002, 0.003, 0.004])).splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    assert lines[5].split()[1:] == ["1.000000000000", "4", "inf"]
    assert float(lines[5].split()[0]) == pytest.approx(4, rel=0.01)
    assert "Total count    =            4" in lines[-2]


def test_seconds_can_be_cut_out_and_added_up():
    """A window's histogram is the sum of its seconds'."""
    seconds = HistogramsPerSecond()
    for second, value in enumerate((0.1, 0.2, 0.4)):
        seconds.add(second, "due", histogram_with([value] * 10).sparse())
    assert len(histogram_of(seconds.buckets(), "due")) == 30
    assert histogram_of(seconds.buckets(), "due", 1, 2).quantile(1.0) == pytest.approx(0.2, rel=0.01)
    assert len(histogram_of(seconds.buckets(), "sent")) == 0


class Stalling:
    """A source and a framework in one: it accepts nothing during the stall, and processes at once what it accepts."""

    def __init__(self, clock, begin, end):
        self.clock, self.begin, self.end, self.counts, self.count = clock, begin, end, DeliveryCounts(), 0

    def send(self, messages):
        if self.begin <= self.clock.now < self.end:
            return 0
        for report in MessageProcessor(100, 0.5).process(messages):
            self.counts.add(report)
        self.count += len(messages)
        return len(messages)

    def confirmed(self):
        return self.count, 0


def test_a_stall_shows_from_due_and_not_in_the_processing(monkeypatch):
    """Messages that fell due during a stall of two seconds have waited for its end: no coordinated omission."""
    clock = ManualClock()
    monkeypatch.setattr("bench.workload.processing.time.monotonic", clock)
    spec = LoadSpec(1, 100.0, 1000.0, 5.0, message_bytes=100, cpu_seconds=0.0, entropy=0.5)
    source = Stalling(clock, 1001.0, 1003.0)
    run_load(OpenLoopSender(spec, source), lambda _: None, lambda: False, clock, clock.sleep)
    assert source.counts.count == 500
    assert source.counts.from_due.quantile(1.0) == pytest.approx(2, rel=0.02)
    assert source.counts.from_due.quantile(0.8) > 0.9  # 200 of 500 waited, 1 s at the mean
    assert source.counts.processing.quantile(1.0) < 0.01


def test_a_stall_of_the_generator_shows_from_due_only(monkeypatch):
    """Latency from the sending stays short, since the system had each message for a moment only."""
    clock = ManualClock()
    monkeypatch.setattr("bench.workload.processing.time.monotonic", clock)
    spec = LoadSpec(1, 100.0, 1000.0, 5.0, message_bytes=100, cpu_seconds=0.0, entropy=0.5)
    source = Stalling(clock, 0, 0)

    def stall(seconds):
        clock.sleep(2.0 if 1001 < clock.now < 1001.5 else seconds)

    run_load(OpenLoopSender(spec, source), lambda _: None, lambda: False, clock, stall)
    assert source.counts.from_due.quantile(1.0) == pytest.approx(2, rel=0.02)
    assert source.counts.from_sent.quantile(1.0) < 0.01
    assert source.counts.processing.quantile(1.0) < 0.01


def test_seconds_of_a_while_ago_are_packed_and_can_still_grow():
    """Late counts are added to their second, and compression loses nothing."""
    seconds = HistogramsPerSecond()
    for second in range(20):
        seconds.add(second, "due", [(7, 1), (3, 2)])
    seconds.add(2, "due", [(7, 10), (9, 1)])
    buckets = seconds.buckets()
    rows = [row for row in zip(buckets.second, buckets.bucket, buckets.count, strict=True) if row[0] == 2]
    assert rows == [(2, 3, 2), (2, 7, 11), (2, 9, 1)]
    assert sum(buckets.count) == 20 * 3 + 11
    assert seconds.buckets() == buckets
