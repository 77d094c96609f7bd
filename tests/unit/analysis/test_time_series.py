"""The counters of a trial are kept in columns and asked by time."""

import pytest

from bench.analysis.time_series import TimeSeries


@pytest.fixture
def rows():
    """Four rows, of which the third has the smallest backlog."""
    found = TimeSeries()
    for at, offered, processed in ((0.5, 50, 40), (1.0, 100, 80), (1.5, 150, 148), (2.0, 200, 150)):
        found.add(at, offered, offered, processed)
    return found


def test_the_least_backlog_of_a_span_includes_its_ends(rows):
    """And is none where the span has no row."""
    assert rows.least_backlog(0.5, 1.0) == 10
    assert rows.least_backlog(1.0, 2.0) == 2
    assert rows.least_backlog(2.0, float("inf")) == 50
    assert rows.least_backlog(0.6, 0.9) is None


def test_the_last_row_says_time_and_backlog(rows):
    """Nothing yet is nothing left behind."""
    assert (rows.last_at, rows.backlog) == (2.0, 50)
    assert (TimeSeries().last_at, TimeSeries().backlog) == (-1.0, 0)


def test_columns_become_a_series(rows):
    """As a measurement keeps it."""
    assert rows.series().processed == [40, 80, 148, 150]
    assert TimeSeries().series().at == []
