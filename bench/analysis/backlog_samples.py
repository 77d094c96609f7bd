"""The instants of a trial at which its backlog is meaningful, and the backlog at each of them."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bench.model.measurement import Measurement

SAMPLE_INTERVAL_S, MIN_SAMPLES = 0.5, 16
"""Distance of samples of a continuous system's backlog; a shorter window is divided into MIN_SAMPLES."""
MAX_STILL_INTERVALS = 3.0
"""A processed counter that has not moved for more intervals than this is taken to stand still."""


class BacklogSamples(Struct, frozen=True):
    """Instants in seconds, and the backlog at each of them in messages."""

    at: NDArray[np.float64]
    backlog: NDArray[np.float64]


def sample_backlog(
    at: NDArray[np.float64], offered: NDArray[np.float64], processed: NDArray[np.float64], inside: NDArray[np.bool_], *,
    interval: float,
) -> BacklogSamples:  # fmt: skip
    """Return the backlog where it is meaningful: right after a completed batch, or twice a second.

    Args:
        at: Seconds since the load began, ascending; the same shape as the counters.
        offered: Messages that were due by then.
        processed: Messages that were processed by then.
        inside: Whether a row lies in the window.
        interval: Batch interval in seconds; 0 for a continuous system.
    """
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
    return BacklogSamples(at[rows], offered[rows] - processed[rows])


def sample_waiting(measurement: Measurement, at: NDArray[np.float64], offered: NDArray[np.float64]) -> BacklogSamples:
    """Return the messages that were due and in no batch yet at the begin of each batch of the window.

    There are no samples if the batches do not account for all processed messages.

    Args:
        measurement: A trial with its batches.
        at: Seconds since the load began, ascending.
        offered: Messages that were due by then; the same shape.
    """
    planned, batches = measurement.planned, measurement.batches
    order = np.argsort(np.asarray(batches.begin, dtype=np.float64), kind="stable")
    begin = np.asarray(batches.begin, dtype=np.float64)[order]
    taken = np.cumsum(np.asarray(batches.messages, dtype=np.float64)[order])
    if len(taken) == 0 or taken[-1] < measurement.processed - len(taken):  # counts may be rounded down
        return BacklogSamples(begin[:0], taken[:0])
    due = np.interp(begin, at, offered)
    inside = (begin >= planned.settle) & (begin <= planned.settle + planned.window) & (due <= measurement.offered)
    return BacklogSamples(begin[inside], (due - taken)[inside])


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
