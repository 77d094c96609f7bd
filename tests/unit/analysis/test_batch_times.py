"""The times of micro-batches tell how full they are, and which rate keeps their interval."""

import numpy as np
import pytest

from bench.analysis.batch_times import BatchLine, BatchTimes, fit_batch_line, read_batch_times
from bench.model.measurement import Batches, Measurement, PlannedTrial, Series


def measurement(batches=Batches(), series=Series(), *, interval=1.0, offered=1200):  # noqa: B008  both are frozen
    """Return a trial of 100/s: 2 s to settle, a window of 10 s."""
    return Measurement(
        PlannedTrial(0, 100.0, 2.0, 10.0, "search"), "", "complete", interval, 12.5, offered, offered, 0, offered,
        0, 0, 0, 0, drained=True, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
        series=series, batches=batches,
    )  # fmt: skip


def each_second(seconds, *, first=0, count=13):
    """Return batches of 100 messages that begin each second and last so long."""
    begin = [float(first + number) for number in range(count)]
    return Batches(begin, [at + seconds for at in begin], [100] * count)


def completed(ends, each):
    """Return the series of completions at these times, of so many messages each."""
    return Series(
        list(ends), [int(100 * at) for at in ends], [0] * len(ends), [each * (n + 1) for n in range(len(ends))]
    )


def test_the_ratio_is_the_share_of_the_interval():
    """Batches of 0.4 s fill two fifths of an interval of 1 s, with nothing uncertain about it."""
    times = read_batch_times(measurement(each_second(0.4)))
    assert times.messages == (100,) * 10
    assert times.seconds == pytest.approx([0.4] * 10)
    assert (times.ratio, times.ratio_error) == (pytest.approx(0.4), pytest.approx(0.0, abs=1e-12))


def test_only_batches_that_began_in_the_window_count():
    """One that ends later counts: the slowest batches do."""
    batches = Batches([1.9, 2.0, 11.9, 12.0], [2.5, 3.0, 19.0, 20.0], [1, 2, 3, 4])
    assert read_batch_times(measurement(batches)).messages == (2, 3)


def test_batches_after_an_early_end_do_not_count():
    """A trial that was given up after 5 s has no more load to judge."""
    assert read_batch_times(measurement(each_second(0.4), offered=500)).messages == (100,) * 3


def test_an_empty_batch_is_no_reading():
    """It runs nothing."""
    assert read_batch_times(measurement(Batches([3.0, 4.0], [3.1, 4.5], [0, 7]))).messages == (7,)


@pytest.mark.parametrize(
    "trial",
    [measurement(), measurement(each_second(0.4), interval=0.0), measurement(each_second(0.4, first=50))],
    ids=["no batches", "continuous", "none in the window"],
)
def test_without_batches_nothing_is_told(trial):
    """Neither is there a ratio of 0."""
    assert read_batch_times(trial) == BatchTimes()


def test_one_batch_has_no_error():
    """Its ratio is known, its error is not."""
    times = read_batch_times(measurement(Batches([3.0], [3.5], [10])))
    assert (times.ratio, times.ratio_error) == (0.5, None)


def test_the_error_of_independent_batches_is_that_of_their_mean():
    """Times that alternate do not tell less than independent ones."""
    begin = [2.0 + n for n in range(10)]
    batches = Batches(begin, [at + (0.4 if n % 2 else 0.6) for n, at in enumerate(begin)], [10] * 10)
    times = read_batch_times(measurement(batches))
    assert times.ratio == pytest.approx(0.5)
    assert times.ratio_error == pytest.approx(np.std([0.4, 0.6] * 5, ddof=1) / np.sqrt(10))


def test_batches_that_grow_tell_less_than_independent_ones():
    """Their error is larger than that of as many independent times, and at most their standard deviation."""
    begin = np.cumsum([2.0, *np.linspace(0.5, 1.3, 9)])[:9].tolist()
    seconds = np.linspace(0.5, 1.3, 9)
    times = read_batch_times(measurement(Batches(begin, (np.array(begin) + seconds).tolist(), [10] * 9)))
    spread = np.std(seconds, ddof=1)
    assert spread / 3 < times.ratio_error <= spread + 1e-12


def test_a_line_through_exact_times_is_exact():
    """0.4 s a batch and 2 ms a message keep 1 s at 300/s, and 500/s if batches may grow."""
    sizes = [50, 100, 200, 300]
    line = fit_batch_line(sizes, [0.4 + 0.002 * size for size in sizes])
    assert (line.fixed, line.per_message) == (pytest.approx(0.4), pytest.approx(0.002))
    assert line.keeping_hz(1.0) == pytest.approx(300)
    assert line.keeping_hz(5.0) == pytest.approx(460)
    assert line.growing_hz == pytest.approx(500)
    assert [line.keeping_error(1.0), line.growing_error] == pytest.approx([0, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("messages", "seconds"),
    [([], []), ([100], [0.5]), ([50, 100], [0.5, 0.6]), ([100] * 9, [0.5] * 9)],
    ids=["none", "one", "two", "one size"],
)
def test_few_batches_or_one_size_tell_no_line(messages, seconds):
    """Two points have a line, but nobody knows how good it is."""
    assert fit_batch_line(messages, seconds) is None


def test_a_line_does_not_begin_below_zero():
    """No batch is done before it begins; its slope is then that through the origin."""
    line = fit_batch_line([100, 200, 400], [0.09, 0.2, 0.42])
    assert line.fixed == 0
    assert line.per_message == pytest.approx(0.001, rel=0.03)
    assert line.keeping_hz(1.0) == pytest.approx(line.growing_hz)
    assert line.fixed_error > 0


def test_a_fixed_cost_beyond_the_interval_keeps_no_rate():
    """Batches that may grow sustain one all the same."""
    line = BatchLine(1.5, 0.001, 0.0, 0.0, 0.0)
    assert (line.keeping_hz(1.0), line.growing_hz) == (0.0, 1000.0)


def test_times_that_do_not_grow_tell_no_rate():
    """A larger batch that was faster by chance is no sign of an endless rate."""
    line = fit_batch_line([100, 200, 300], [0.5, 0.48, 0.47])
    assert (line.keeping_hz(1.0), line.keeping_error(1.0), line.growing_hz, line.growing_error) == (None,) * 4


def test_the_errors_of_a_line_are_those_of_its_scatter():
    """With 5 % noise, two errors to both sides hold the true rates in about 95 of 100 cells."""
    seeded = np.random.default_rng(7)
    kept = grown = 0
    for _ in range(400):
        sizes = seeded.integers(100, 400, 30)
        line = fit_batch_line(sizes, (0.3 + 0.001 * sizes) * seeded.normal(1, 0.05, 30))
        kept += abs(line.keeping_hz(1.0) - 700) < 2 * line.keeping_error(1.0)
        grown += abs(line.growing_hz - 1000) < 2 * line.growing_error
    assert 0.92 < kept / 400 < 0.98
    assert 0.92 < grown / 400 < 0.98


def test_slow_batches_are_seen_in_the_counter():
    """Completions 1.5 s apart, twice in a row, are batches of 1.5 s; they tell no mean ratio."""
    times = read_batch_times(measurement(series=completed(np.arange(1.0, 13.0, 1.5), 150)))
    assert times.seconds == pytest.approx([1.5] * len(times.seconds))
    assert set(times.messages) == {150}
    assert (len(times.messages), times.ratio) == (6, None)


@pytest.mark.parametrize(
    "ends", [np.arange(1.0, 13.0), [1.0, 2.0, 3.4, 4.0, 5.0, 6.4, 7.0]], ids=["on time", "one late"]
)
def test_a_counter_that_keeps_the_interval_tells_no_times(ends):
    """Nor does a single late completion, whose batch may have waited for the next interval."""
    assert read_batch_times(measurement(series=completed(ends, 100))) == BatchTimes()
