"""Stability of a system over one trial: drift of its backlog, loss, and noise of its processed rate.

The backlog is sampled only at instants at which it is meaningful, and judged by its drift and its minimum, never by its
size: by Little's law (backlog = rate x latency) an absolute limit on the backlog limits the rate. Rules and constants:
the project's max-rate-search reference, section 4.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.model.measurement import Measurement

SAMPLE_INTERVAL_S, MIN_SAMPLES = 0.5, 16
"""Distance of samples of a continuous system's backlog; a shorter window is divided into MIN_SAMPLES."""
MIN_GROWTH, MIN_DRIFT = 0.004, 0.002
"""Overloaded only above both: growth of the minimum as a share of the window's messages, drift as a share of the
rate."""
LATE_SHARE = 0.6
"""The final share of the samples, in which a sustained backlog returns to its initial minimum."""
SLICES = 6
MAX_STILL_INTERVALS = 3.0
"""A processed counter that has not moved for more intervals than this is taken to stand still."""
FEW_MESSAGES = 2
"""A growth up to this many messages can be an incomplete batch."""
MAX_LOSS = 0.999
AHEAD_S = 0.01
"""Time by which a processed counter may be ahead of the due times; farther ahead the counters are inconsistent."""


class Stability(Struct, frozen=True):
    """The assessment of one trial's window; `loss` is the share of the offered rate that the system did not process.

    `seconds` is the length of the assessed part of the window.
    """

    overloaded: bool
    loss: float
    seconds: float
    slice_rates: tuple[float, ...] = ()
    """processed messages/s in consecutive slices of `slice_seconds`"""
    slice_seconds: float = 0.0
    inconsistent: bool = False
    """the counters contradict each other; the other fields mean nothing"""


class _Samples(Struct, frozen=True):
    """Instants in seconds, backlog and processed counter in messages."""

    at: NDArray[np.float64]
    backlog: NDArray[np.float64]
    processed: NDArray[np.float64]


def assess_stability(measurement: Measurement) -> Stability:
    """Assess the offered and processed counters over the window, as far as the trial got.

    The window is overloaded if the backlog's minimum over the last 60 % of the samples exceeds that over their first
    third by more than 0.4 % of the window's messages, *and* the backlog drifts by more than 0.2 % of the rate; or if
    the trial was given up. The loss is drift / rate. With fewer than three samples see `_assess_few_samples`.

    Source: Karimov et al. (ICDE 2018) for the criterion; max-rate-search reference, section 4, for the constants.

    Args:
        measurement: A trial with its series of counters.
    """
    planned, series = measurement.planned, measurement.series
    columns = (series.at, series.offered, series.processed)
    at, offered, processed = (np.asarray(column, dtype=np.float64) for column in columns)
    if _are_inconsistent(at, offered, processed, planned.rate):
        return Stability(overloaded=False, loss=0.0, seconds=0.0, inconsistent=True)
    begin, end = planned.settle, planned.settle + planned.window
    inside = (at >= begin - 1e-9) & (at <= end + 1e-9) & (offered <= measurement.offered)
    samples = _sample(at, offered, processed, inside, interval=measurement.batch_interval)
    seconds = min(planned.window, max(0.0, measurement.offered / planned.rate - begin))
    if len(samples.at) < 3:
        return _assess_few_samples(offered[inside] - processed[inside], planned.rate, seconds)
    stability = _assess_samples(samples, planned.rate, seconds)
    return replace(stability, overloaded=stability.overloaded or measurement.ended == "hopeless")


def _are_inconsistent(
    at: NDArray[np.float64], offered: NDArray[np.float64], processed: NDArray[np.float64], rate: float
) -> bool:
    """Return True if time or the processed counter ran backwards, or more was processed than was due."""
    if len(at) == 0:
        return False
    backwards = bool((np.diff(at) < 0).any() or (np.diff(processed) < 0).any())
    return backwards or bool((processed - offered).max() > 2 + AHEAD_S * rate)


def _sample(
    at: NDArray[np.float64], offered: NDArray[np.float64], processed: NDArray[np.float64], inside: NDArray[np.bool_], *,
    interval: float,
) -> _Samples:  # fmt: skip
    """Return the rows at which the backlog is meaningful: right after a completed batch, or twice a second."""
    if interval > 0:
        moved = np.diff(processed, prepend=0.0) > 0
        rows = np.flatnonzero(inside & moved)
        rows = rows[1:] if len(rows) > 3 else rows
        rows = np.append(rows, _rows_standing_still(at, inside, rows, interval))
    else:
        candidates = np.flatnonzero(inside)
        times = at[candidates]
        step = (
            min(SAMPLE_INTERVAL_S, float(times[-1] - times[0]) / MIN_SAMPLES) if len(times) > 1 else SAMPLE_INTERVAL_S
        )
        due = np.arange(times[0], times[-1] + 1e-9, max(step, 1e-3)) if len(times) else times
        rows = candidates[np.unique(np.searchsorted(times, due - 1e-9))] if len(times) else candidates
    return _Samples(at[rows], offered[rows] - processed[rows], processed[rows])


def _rows_standing_still(
    at: NDArray[np.float64], inside: NDArray[np.bool_], rows: NDArray[np.intp], interval: float
) -> NDArray[np.intp]:
    """Return rows after the last batch, one an interval, if the counter stands still since.

    Otherwise no sample would show it.
    """
    within = np.flatnonzero(inside)
    if len(rows) < 2:
        return rows[:0]
    last, usual = at[rows[-1]], (at[rows[-1]] - at[rows[0]]) / (len(rows) - 1)
    step = max(interval, usual)
    if at[within[-1]] - last <= MAX_STILL_INTERVALS * step:
        return rows[:0]
    due = np.arange(last + step, at[within[-1]], step)
    return np.asarray(within[np.minimum(np.searchsorted(at[within], due), len(within) - 1)])


def _assess_few_samples(backlog: NDArray[np.float64], rate: float, seconds: float) -> Stability:
    """Assess a window of few samples: overloaded if over half of the offered messages were not processed."""
    growth = float(backlog[-1] - backlog[0]) if len(backlog) else 0.0
    share = growth / max(1.0, rate * seconds)
    overloaded = share > 0.5 and growth > FEW_MESSAGES
    return Stability(overloaded, min(MAX_LOSS, share) if overloaded else 0.0, seconds)


def _assess_samples(samples: _Samples, rate: float, seconds: float) -> Stability:
    count, backlog = len(samples.at), samples.backlog
    drift = _estimate_drift(samples)
    minimum = float(backlog[: max(1, count // 3)].min())
    late_minimum = float(backlog[int(count * (1 - LATE_SHARE)) :].min())
    overloaded = late_minimum > minimum + MIN_GROWTH * rate * seconds and drift > MIN_DRIFT * rate
    rates, slice_seconds = _slice_rates(samples)
    return Stability(overloaded, min(MAX_LOSS, max(0.0, drift / rate)), seconds, rates, slice_seconds)


def _estimate_drift(samples: _Samples) -> float:
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


def _slice_rates(samples: _Samples) -> tuple[tuple[float, ...], float]:
    """Return the processed messages/s in about SLICES equal slices, and the mean length of a slice in seconds."""
    step = max(1, len(samples.at) // SLICES)
    at, processed = samples.at[::step], samples.processed[::step]
    lengths = np.diff(at)
    if len(lengths) == 0 or lengths.min() <= 0:
        return (), 0.0
    return tuple((np.diff(processed) / lengths).tolist()), float(lengths.mean())
