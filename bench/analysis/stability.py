"""Stability of a system over one trial: drift of its backlog, growth of its batches, and loss.

This is the only judge of the backlog: verdicts, searches and reports use it. The backlog is sampled only at instants at
which it is meaningful, and judged by its drift and its minimum, never by its size: by Little's law (backlog = rate x
latency) an absolute limit on the backlog limits the rate.
"""

import math

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.analysis.backlog_samples import BacklogSamples, sample_backlog, sample_waiting
from bench.analysis.first_result import FILL_FACTOR, latency_of, steady_from
from bench.model.measurement import Measurement

DEFAULT_PRECISION = 0.10
"""Relative width to which rates are told apart, where nothing else is said."""
MIN_BATCHES = 6
"""Completed batches that a window must hold before a rate can be called sustained."""
MAX_BATCH_RATIO, MAX_SPACING = 1.02, 1.05
"""Above this mean processing time, in batch intervals, or this distance of completed batches, they outgrow their
interval."""
MIN_BATCH_MESSAGES = 3.0
"""With fewer messages an interval, the distance of batches is that of messages."""
MAX_DRAIN_INTERVALS, DRAIN_SLACK_S = 2.25, 0.3
"""A system that keeps its interval is done after two: the last message waits for a batch, which takes one at most."""
CONTINUOUS_JITTER_S, BATCH_JITTER = 0.01, 0.15
"""Variation of a steady backlog, in seconds and in batch intervals of traffic; that of batches holds for a window of
four intervals, and is less in longer ones."""
IDLE_RATIO = 0.95
"""While batches take less than this share of their interval, the backlog at their end shows how long they took; what
they left behind as they began shows whether messages reach them as fast as they arrive. Where that is not known, a
backlog of up to one interval's messages is no overload."""
WAITING_JITTER = 0.6
"""Batch intervals of traffic by which that varies in steady state: a receiver hands over blocks of up to half an
interval."""
MIN_GROWTH, MIN_DRIFT = 0.004, 0.002
"""Overloaded only above both: growth of the minimum as a share of the window's messages, drift as a share of the
rate."""
MIN_STEADY_SHARE = 0.5
"""Share of a window that must lie behind the time in which a system's latency fills up."""
LATE_SHARE = 0.6
"""The final share of the samples, in which a sustained backlog returns to its initial minimum."""
FEW_MESSAGES = 2
"""A growth up to this many messages can be an incomplete batch."""
MAX_LOSS = 0.999
"""Largest loss: the capacity that a loss shows, rate x (1 - loss), is never 0."""
AHEAD_S = 0.01
"""Time by which a processed counter may be ahead of the due times; farther ahead the counters are inconsistent."""


class Stability(Struct, frozen=True):
    """The assessment of one trial's window; `loss` is the share of the offered rate that the system did not process.

    `seconds` is the length of the assessed part of the window.
    """

    overloaded: bool
    loss: float
    seconds: float
    inconsistent: bool = False
    """the counters contradict each other; the other fields mean nothing"""
    grew: bool = False
    """batches took longer than the interval that they were asked to keep"""
    too_short: bool = False
    """too few batches were completed to call the rate sustained"""
    spacing: float = 0.0
    """mean distance of completed batches, in batch intervals, where only the counter shows them; else 0"""


def assess_stability(
    measurement: Measurement, precision: float = DEFAULT_PRECISION, *, keep_interval: bool = True
) -> Stability:
    """Assess the offered and processed counters over the window, as far as the trial got.

    The window is overloaded if the backlog's minimum over the last 60 % of the samples exceeds that over their first
    third by more than 0.4 % of the window's messages, *and* the backlog drifts by more than 0.2 % of the rate (more at
    a coarser precision); if batches outgrew the interval that they were asked to keep; if the system went on for
    longer after the load than it could have with batches of that interval; or if the trial was given up. The loss is
    drift / rate. A window without six completed batches is too short to be called sustained, and one that has hardly
    begun when a continuous system shows its first result is too short to tell anything.

    Source of the criterion: Karimov et al. (ICDE 2018).

    Args:
        measurement: A trial with its series of counters.
        precision: Relative width to which rates are told apart.
        keep_interval: False if batches may grow.
    """
    planned, series, interval = measurement.planned, measurement.series, measurement.batch_interval
    columns = (series.at, series.offered, series.processed)
    at, offered, processed = (np.asarray(column, dtype=np.float64) for column in columns)
    if _are_inconsistent(at, offered, processed, planned.rate):
        return Stability(overloaded=False, loss=0.0, seconds=0.0, inconsistent=True)
    begin, end = steady_from(measurement), planned.settle + planned.window
    seconds = measurement.window_s - (begin - planned.settle)
    if seconds < MIN_STEADY_SHARE * measurement.window_s and measurement.ended != "hopeless":
        if _drains_within_latency(measurement):
            return Stability(overloaded=False, loss=0.0, seconds=max(0.0, seconds), too_short=True)
        begin, seconds = planned.settle, measurement.window_s  # what takes so long to drain did not keep up
    inside = (at >= begin - 1e-9) & (at <= end + 1e-9) & (offered <= measurement.offered)
    samples = sample_backlog(at, offered, processed, inside, interval=interval)
    if len(samples.at) < 3:
        stability = _assess_few_samples(offered[inside] - processed[inside], planned.rate, seconds)
    else:
        waiting = sample_waiting(measurement, at, offered)
        light = interval > 0 and _mean_batch(measurement) < IDLE_RATIO
        idle = light and len(waiting.at) >= 3
        jitter = interval * planned.rate if light and not idle else _jitter(planned.rate, seconds, interval)
        stability = _assess_samples(
            waiting if idle else samples, planned.rate, seconds, jitter=jitter,
            min_growth=WAITING_JITTER * interval * planned.rate if idle else 0.0, precision=precision,
        )  # fmt: skip
    if interval > 0:
        completed = _count_batches(measurement, int(np.count_nonzero(inside & (np.diff(processed, prepend=0.0) > 0))))
        stability = _assess_batches(measurement, samples, stability, completed, keep_interval=keep_interval)
    return replace(stability, overloaded=stability.overloaded or measurement.ended == "hopeless")


def _assess_batches(
    measurement: Measurement, samples: BacklogSamples, stability: Stability, completed: int, *, keep_interval: bool
) -> Stability:
    """Return the stability of a system that works in batches.

    Args:
        measurement: The trial.
        samples: Those of its window.
        stability: From the backlog alone.
        completed: Number of batches completed within the window.
        keep_interval: False if batches may grow.
    """
    ratio = _batch_ratio(measurement, samples) if keep_interval else None
    drain = _drain_seconds(measurement)
    slow = drain is not None and drain > MAX_DRAIN_INTERVALS * measurement.batch_interval + DRAIN_SLACK_S
    few = completed < MIN_BATCHES and measurement.planned.rate * measurement.batch_interval >= MIN_BATCH_MESSAGES
    if ratio is not None:
        loss = max(stability.loss, 1 - 1 / ratio)
        return replace(stability, overloaded=True, grew=not stability.overloaded, loss=min(MAX_LOSS, loss))
    if slow and keep_interval and drain is not None and not stability.overloaded:
        loaded = measurement.sent_s
        loss = max(stability.loss, 1 - loaded / (loaded + drain - measurement.batch_interval))
        return replace(stability, overloaded=True, loss=min(MAX_LOSS, loss))
    distances = _distances(measurement, samples)
    shown = keep_interval and len(distances) > 0 and _mean_batch(measurement) == math.inf
    spacing = float(distances.mean()) if shown else 0.0
    return replace(stability, too_short=few and not stability.overloaded, spacing=spacing)


def _batch_ratio(measurement: Measurement, samples: BacklogSamples) -> float | None:
    """Return the mean time that batches took, in batch intervals, if they outgrew theirs; None if they kept it.

    Taken from the batches themselves, or else from the distances at which the processed counter moved.
    """
    ratio = _mean_batch(measurement)
    if ratio < math.inf:
        return ratio if ratio > MAX_BATCH_RATIO else None
    distances = _distances(measurement, samples)
    kept = distances[: len(distances) - max(1, len(distances) // 10)]  # a pause is no growth
    return float(kept.mean()) if len(kept) and kept.mean() > MAX_SPACING else None


def _distances(measurement: Measurement, samples: BacklogSamples) -> NDArray[np.float64]:
    """Return the sorted distances at which the processed counter moved, in batch intervals; none if they show none."""
    distances = np.sort(np.diff(samples.at) / measurement.batch_interval)
    few = measurement.planned.rate * measurement.batch_interval < MIN_BATCH_MESSAGES
    return distances[:0] if few or len(distances) < MIN_BATCHES // 2 else distances


def _count_batches(measurement: Measurement, moves: int) -> int:
    """Return the number of batches that began in the window and were completed, or else those that ended within it.

    Args:
        measurement: The trial.
        moves: Number of times that the processed counter moved within the window.
    """
    begin, end = measurement.planned.settle, measurement.planned.settle + measurement.planned.window
    return max(moves, sum(begin <= start <= end for start in measurement.batches.begin))


def _mean_batch(measurement: Measurement) -> float:
    """Return the mean processing time of the window's batches, in batch intervals; inf if it is not reported."""
    planned, batches = measurement.planned, measurement.batches
    begin, end = planned.settle, planned.settle + planned.window
    took = [
        finish - start
        for start, finish, count in zip(batches.begin, batches.end, batches.messages, strict=True)
        if count and start <= end and finish >= begin and finish > start
    ]
    return sum(took) / len(took) / measurement.batch_interval if len(took) >= MIN_BATCHES // 2 else math.inf


def _jitter(rate: float, seconds: float, interval: float) -> float:
    """Return by how many messages a steady backlog varies over a window."""
    if interval <= 0:
        return FEW_MESSAGES + CONTINUOUS_JITTER_S * rate
    return FEW_MESSAGES + BATCH_JITTER * interval * rate * min(1.0, 4 * interval / max(seconds, 1e-9))


def _drain_seconds(measurement: Measurement) -> float | None:
    """Return the time from the end of the load until everything sent was processed; None if that is not known."""
    series, done = measurement.series, measurement.processed + measurement.corrupted
    if not (measurement.drained and series.at and done):
        return None
    finished = next((at for at, count in zip(series.at, series.processed, strict=True) if count >= done), series.at[-1])
    planned = measurement.planned
    whole = measurement.ended == "complete"  # random arrivals are more or fewer messages than the rate gives
    return max(0.0, finished - (planned.settle + planned.window if whole else measurement.sent_s))


def _drains_within_latency(measurement: Measurement) -> bool:
    """Return whether a trial was done as soon after the load as its first result came after its beginning."""
    drain = _drain_seconds(measurement)
    return drain is not None and drain <= FILL_FACTOR * latency_of(measurement) + DRAIN_SLACK_S


def _are_inconsistent(
    at: NDArray[np.float64], offered: NDArray[np.float64], processed: NDArray[np.float64], rate: float
) -> bool:
    """Return True if time or the processed counter ran backwards, or more was processed than was due."""
    if len(at) == 0:
        return False
    backwards = bool((np.diff(at) < 0).any() or (np.diff(processed) < 0).any())
    return backwards or bool((processed - offered).max() > 2 + AHEAD_S * rate)


def _assess_few_samples(backlog: NDArray[np.float64], rate: float, seconds: float) -> Stability:
    """Assess a window of few samples: overloaded if over half of the offered messages were not processed."""
    growth = float(backlog[-1] - backlog[0]) if len(backlog) else 0.0
    share = growth / max(1.0, rate * seconds)
    overloaded = share > 0.5 and growth > FEW_MESSAGES
    return Stability(overloaded, min(MAX_LOSS, share) if overloaded else 0.0, seconds)


def _assess_samples(  # noqa: PLR0913  what a window is compared with; there is one call
    samples: BacklogSamples, rate: float, seconds: float, *, jitter: float, min_growth: float, precision: float
) -> Stability:
    """Assess the backlog's samples.

    Args:
        samples: At least three.
        rate: Offered messages/s.
        seconds: Length of the assessed part of the window.
        jitter: Messages by which the minimum of a steady backlog may rise.
        min_growth: Messages by which a steady backlog may drift in `seconds`.
        precision: Relative width to which rates are told apart.
    """
    count, backlog = len(samples.at), samples.backlog
    share = precision / DEFAULT_PRECISION
    slack, min_drift = max(1.0, share) * MIN_GROWTH * rate * seconds + jitter, max(1.0, share) * MIN_DRIFT * rate
    min_drift = max(min_drift, min_growth / max(seconds, 1e-9))
    drift = _estimate_drift(samples)
    minimum = float(backlog[: max(1, count // 3)].min())
    late_minimum = float(backlog[int(count * (1 - LATE_SHARE)) :].min())
    overloaded = late_minimum > minimum + slack and drift > min_drift
    return Stability(overloaded, min(MAX_LOSS, max(0.0, drift / rate)), seconds)


def _estimate_drift(samples: BacklogSamples) -> float:
    """Return the growth of the backlog in messages/s, between the medians of its first and last quarter.

    The centres of n // 4 samples at both ends are (n - n // 4) / (n - 1) of the span apart: 3/4 for large n, more for
    small n. With 3/4 throughout, a loss of 10 % would be estimated as 11.3 % at 14 samples. Below eight samples:
    between the first and the last one.
    """
    count, span = len(samples.at), float(samples.at[-1] - samples.at[0])
    if span <= 0:
        return 0.0
    if count < 8:
        return float(samples.backlog[-1] - samples.backlog[0]) / span
    quarter = count // 2 // 2
    first, last = np.median(samples.backlog[:quarter]), np.median(samples.backlog[-quarter:])
    return float(last - first) / (span * (count - quarter) / (count - 1))
