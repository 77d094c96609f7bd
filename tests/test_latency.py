"""Histograms have HdrHistogram's layout: a quantile is within one percent, and adding two is exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.latency import Histogram

durations = st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=200)


def histogram_of(values):
    histogram = Histogram()
    histogram.record(np.array(values, dtype=np.float64))
    return histogram


@given(durations, st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_within_one_percent(values, share):
    """The reported duration is that of the right message, rounded up by less than 1 % (or 1 µs)."""
    exact = sorted(values)[max(1, int(np.ceil(share * len(values)))) - 1]
    assert histogram_of(values).quantile(share) == pytest.approx(exact, rel=0.01, abs=1.1e-6)


@given(durations, durations)
def test_adding_is_the_same_as_recording_both(one, two):
    """Histograms of several processes can be merged."""
    merged = histogram_of(one)
    merged.add(histogram_of(two).sparse())
    assert merged.sparse() == histogram_of(one + two).sparse()


def test_an_empty_histogram_has_no_quantile():
    """No value is not zero."""
    assert Histogram().quantile(0.5) is None


def test_a_negative_duration_is_counted_as_such():
    """It is impossible, so it must be seen."""
    assert histogram_of([-0.5, 0.5]).negative == 1


def test_the_largest_duration_fits():
    """A message that waited for months does not break the histogram."""
    assert len(histogram_of([1e9])) == 1
