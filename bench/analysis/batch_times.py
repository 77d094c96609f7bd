"""Processing times of micro-batches: how full they are, and the line from which the sustained rates follow.

A batch of m messages keeps an engine busy for about f + s m seconds. It keeps an interval of B seconds up to a rate of
(B - f) / (B s) messages/s; if batches may grow, they end at any rate below 1 / s. Source of the rule: Spark's
Structured Streaming and DStreams guides, "processing time below the batch interval".
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.model.measurement import Batches, Measurement

MIN_EXCESS = 0.1
"""Share of the interval by which two distances of completions must exceed it, so that without the batches' own begins
the engine is taken to have been busy in between: a batch at once after a slow one need not have waited for it."""
MIN_FIT = 3
"""Batches that a line needs: two have no residuals."""
MAX_ROUNDS = 20
"""Of reweighting; it usually settles in five."""


class BatchTimes(Struct, frozen=True):
    """The batches with messages that began in a trial's window: messages, and seconds of processing, of each.

    `ratio` is the mean of processing time / batch interval, `ratio_error` its standard error. They are None where they
    cannot be told: without batches, without their begins, and, for the error, with one batch.
    """

    messages: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    ratio: float | None = None
    ratio_error: float | None = None


class BatchLine(Struct, frozen=True):
    """The line seconds = fixed + per_message * messages through the batches of one cell, with its standard errors.

    `covariance` is that of both coefficients. `fixed` is never negative; its error is that of the free line then, too.
    """

    fixed: float
    per_message: float
    fixed_error: float
    per_message_error: float
    covariance: float

    def keeping_hz(self, interval: float) -> float | None:
        """Return the highest messages/s at which batches end within an interval in seconds.

        It is 0 if an empty batch does not, and None if the time does not grow with the messages.
        """
        if self.per_message <= 0:
            return None
        return max(0.0, interval - self.fixed) / (interval * self.per_message)

    def keeping_error(self, interval: float) -> float | None:
        """Return the standard error of `keeping_hz`, to first order in those of the line."""
        hz = self.keeping_hz(interval)
        if hz is None:
            return None
        by_fixed, by_message = -1 / (interval * self.per_message), -hz / self.per_message
        variance = (by_fixed * self.fixed_error) ** 2 + (by_message * self.per_message_error) ** 2
        return math.sqrt(max(0.0, variance + 2 * by_fixed * by_message * self.covariance))

    @property
    def growing_hz(self) -> float | None:
        """The messages/s below which batches end if they may grow; None if the time does not grow with the messages."""
        return 1 / self.per_message if self.per_message > 0 else None

    @property
    def growing_error(self) -> float | None:
        """The standard error of `growing_hz`, to first order."""
        return self.per_message_error / self.per_message**2 if self.per_message > 0 else None


def read_batch_times(measurement: Measurement) -> BatchTimes:
    """Return the processing times of the batches that began in a trial's window, before its load ended.

    Without recorded batches they follow from the series, as far as they can: where completions are farther apart than
    the interval, the engine was busy all the time. Such batches are the slow ones only, and tell no mean ratio.

    Args:
        measurement: A trial with its series or batches; one of a continuous framework has no batch times.
    """
    planned, interval = measurement.planned, measurement.batch_interval
    if interval <= 0:
        return BatchTimes()
    end = min(planned.settle + planned.window, measurement.offered / planned.rate)
    recorded = bool(measurement.batches.end)
    batches = measurement.batches if recorded else _find_slow_batches(measurement)
    rows = [
        (messages, until - since)
        for since, until, messages in zip(batches.begin, batches.end, batches.messages, strict=True)
        if messages > 0 and until > since and planned.settle <= since < end
    ]
    if not rows:
        return BatchTimes()
    messages, seconds = zip(*rows, strict=True)
    ratios = np.array(seconds) / interval
    if not recorded:
        return BatchTimes(messages, seconds)
    return BatchTimes(messages, seconds, float(ratios.mean()), _error_of_mean(ratios))


def fit_batch_line(messages: Sequence[int], seconds: Sequence[float]) -> BatchLine | None:
    """Return the line through batches, by weighted least squares; None if their sizes do not tell it.

    The deviations of a batch's time are taken to be in proportion to it (a slower machine slows all of it), so that
    weights are 1 / expected time squared, found by iteration. A line that would begin below zero begins at zero.

    Source: Carroll and Ruppert, Transformation and Weighting in Regression (1988), chapter 2, for the weights.

    Args:
        messages: Of each batch; those of several trials of a cell can be joined.
        seconds: Of processing of each.

    Returns:
        None for fewer than MIN_FIT batches, or only one size of them.
    """
    x, y = np.asarray(messages, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if len(x) < MIN_FIT or x.min() == x.max():
        return None
    expected = np.maximum(y, 1e-6)
    slope_only = False
    for _ in range(MAX_ROUNDS):
        weights = expected**-2.0
        fixed, slope, covariance = _solve(x, y, weights)
        slope_only = fixed < 0
        if slope_only:
            fixed, slope = 0.0, float((weights * x * y).sum() / (weights * x * x).sum())
        before, expected = expected, np.maximum(fixed + slope * x, 1e-3 * y.mean())
        if np.allclose(before, expected, rtol=1e-9):
            break
    fixed_error, slope_error = (float(one) for one in np.sqrt(np.diag(covariance)))
    if not slope_only:
        return BatchLine(fixed, slope, fixed_error, slope_error, float(covariance[0, 1]))
    residual = float((weights * (y - slope * x) ** 2).sum()) / (len(x) - 1)
    return BatchLine(0.0, slope, fixed_error, math.sqrt(residual / float((weights * x * x).sum())), 0.0)


def _solve(
    x: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float, NDArray[np.float64]]:
    """Return intercept, slope and their covariance of a weighted line, the latter scaled by the residuals."""
    total = weights.sum()
    centre, level = float((weights * x).sum() / total), float((weights * y).sum() / total)
    spread = float((weights * (x - centre) ** 2).sum())
    slope = float((weights * (x - centre) * (y - level)).sum()) / spread
    fixed = level - slope * centre
    variance = float((weights * (y - fixed - slope * x) ** 2).sum()) / (len(x) - 2)
    shared = -centre / spread
    return fixed, slope, variance * np.array([[1 / total + centre**2 / spread, shared], [shared, 1 / spread]])


def _error_of_mean(values: NDArray[np.float64]) -> float | None:
    """Return the standard error of a mean of values in a row that depend on their neighbours; None for one value.

    A slow batch leaves more messages to the next. With a correlation r of neighbours, n values tell as much as
    n (1 - r) / (1 + r) independent ones, as of an autoregressive process of first order; at least one.
    """
    count = len(values)
    if count < 2:
        return None
    off = values - values.mean()
    squares = float((off**2).sum())
    neighbours = float((off[1:] * off[:-1]).sum()) / squares if squares > 0 else 0.0
    correlation = min(max(0.0, neighbours), (count - 1) / (count + 1))
    return math.sqrt(squares / (count - 1) / count * (1 + correlation) / (1 - correlation))


def _find_slow_batches(measurement: Measurement) -> Batches:
    """Return the batches that the processed counter tells: it moved later than an interval twice in a row."""
    at = np.asarray(measurement.series.at, dtype=np.float64)
    processed = np.asarray(measurement.series.processed, dtype=np.int64)
    rows = np.flatnonzero(np.diff(processed, prepend=0) > 0)
    ends, counts = at[rows], processed[rows]
    slow = np.diff(ends) > (1 + MIN_EXCESS) * measurement.batch_interval
    found = np.flatnonzero(slow[1:] & slow[:-1]) + 1
    messages = np.diff(counts)[found]
    return Batches(ends[found].tolist(), ends[found + 1].tolist(), messages.tolist())
