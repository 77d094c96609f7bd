"""The counters of a trial are stored in columns and read by time."""

import pytest

from bench.analysis.time_series import TimeSeries


@pytest.fixture
def rows():
    """Return four rows, of which the third has the smallest backlog."""
    series = TimeSeries()
    for at, offered, processed in ((0.5, 50, 40), (1.0, 100, 80), (1.5, 150, 148), (2.0, 200, 150)):
        series.add(at, offered, offered, processed)
    return series


def test_the_least_backlog_of_a_span_includes_its_ends(rows):
    """The rows at both ends of the span count, and a span without rows has none."""
    assert rows.min_backlog(0.5, 1.0) == 10
    assert rows.min_backlog(1.0, 2.0) == 2
    assert rows.min_backlog(2.0, float("inf")) == 50
    assert rows.min_backlog(0.6, 0.9) is None


def test_the_last_row_has_time_and_backlog(rows):
    """Without rows the time is -1 and the backlog 0."""
    assert (rows.last_at, rows.backlog) == (2.0, 50)
    assert (TimeSeries().last_at, TimeSeries().backlog) == (-1.0, 0)


def test_columns_become_a_series(rows):
    """The series has the columns of the rows."""
    assert rows.series().processed == [40, 80, 148, 150]
    assert TimeSeries().series().at == []
