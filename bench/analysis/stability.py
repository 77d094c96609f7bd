"""What the counters of a trial say of the ceiling: whether the backlog drifts, by how much, and how noisy the system is.

Backlog is read only at the instants when it means something and is judged by its drift and its floor, never by its size: Little's
law makes any absolute limit a limit of the rate. Rules and constants: the project's max-rate-search reference, section 4.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.model.measurement import Measurement

SAMPLE, MIN_LOOKS = 0.5, 16
"""Seconds between two looks at the backlog of a continuous system; shorter windows are looked at so many times."""
FLOOR_SLACK, MIN_DRIFT = 0.004, 0.002
LATE_SHARE = 0.6
SLICES = 6
STILL = 3.0
"""A processed counter that has not moved for so many intervals stands still."""
FEW_MESSAGES = 2
"""So many may wait for their batch."""
MAX_LOSS = 0.999
AHEAD = 0.01
"""Seconds by which a processed counter may seem to be ahead of the due times; a farther one is broken."""


class Drift(Struct, frozen=True):
    """A judged window: `loss` is the share of the offered rate that the system did not keep up with; `seconds` were read."""

    overloaded: bool
    loss: float
    seconds: float
    slices: tuple[float, ...] = ()
    """messages/s processed in neighbouring slices of `slice_seconds`"""
    slice_seconds: float = 0.0
    broken: bool = False
    """the counters contradict themselves"""


class _Instants(Struct, frozen=True):
    at: NDArray[np.float64]
    backlog: NDArray[np.float64]
    processed: NDArray[np.float64]


def drift_of(seen: Measurement) -> Drift:
    """What the offered and the processed counter say over the window, as far as the trial got."""
    planned = seen.planned
    at, offered, processed = (np.asarray(column, dtype=np.float64) for column in
                              (seen.series.at, seen.series.offered, seen.series.processed))  # fmt: skip
    if _broken(at, offered, processed, planned.rate):
        return Drift(overloaded=False, loss=0.0, seconds=0.0, broken=True)
    begin, end = planned.settle, planned.settle + planned.window
    inside = (at >= begin - 1e-9) & (at <= end + 1e-9) & (offered <= seen.offered)
    found = _instants(at, offered, processed, inside, interval=seen.batch_interval)
    seconds = min(planned.window, max(0.0, seen.offered / planned.rate - begin))
    if len(found.at) < 3:
        return _drift_of_few(offered[inside] - processed[inside], planned.rate, seconds)
    drift = _judged(found, planned.rate, seconds)
    return replace(drift, overloaded=drift.overloaded or seen.ended == "hopeless")


def _broken(at: NDArray[np.float64], offered: NDArray[np.float64], processed: NDArray[np.float64], rate: float) -> bool:
    """Whether time or the processed counter ran backwards, or more was processed than was due."""
    if len(at) == 0:
        return False
    backwards = bool((np.diff(at) < 0).any() or (np.diff(processed) < 0).any())
    return backwards or bool((processed - offered).max() > 2 + AHEAD * rate)


def _instants(
    at: NDArray[np.float64], offered: NDArray[np.float64], processed: NDArray[np.float64], inside: NDArray[np.bool_], *,
    interval: float,
) -> _Instants:  # fmt: skip
    """The rows at which backlog means something: right after a batch was done, or twice a second."""
    if interval > 0:
        moved = np.diff(processed, prepend=0.0) > 0
        rows = np.flatnonzero(inside & moved)
        rows = rows[1:] if len(rows) > 3 else rows
        rows = np.append(rows, _still(at, inside, rows, interval))
    else:
        candidates = np.flatnonzero(inside)
        times = at[candidates]
        step = min(SAMPLE, float(times[-1] - times[0]) / MIN_LOOKS) if len(times) > 1 else SAMPLE
        due = np.arange(times[0], times[-1] + 1e-9, max(step, 1e-3)) if len(times) else times
        rows = candidates[np.unique(np.searchsorted(times, due - 1e-9))] if len(times) else candidates
    return _Instants(at[rows], offered[rows] - processed[rows], processed[rows])


def _still(
    at: NDArray[np.float64], inside: NDArray[np.bool_], rows: NDArray[np.intp], interval: float
) -> NDArray[np.intp]:
    """Rows after the last move, one an interval, when that is long ago: waiting for the next move would hide that none comes."""
    within = np.flatnonzero(inside)
    if len(rows) < 2:
        return rows[:0]
    last, usual = at[rows[-1]], (at[rows[-1]] - at[rows[0]]) / (len(rows) - 1)
    step = max(interval, usual)
    if at[within[-1]] - last <= STILL * step:
        return rows[:0]
    due = np.arange(last + step, at[within[-1]], step)
    return np.asarray(within[np.minimum(np.searchsorted(at[within], due), len(within) - 1)])


def _drift_of_few(backlog: NDArray[np.float64], rate: float, seconds: float) -> Drift:
    """A window in which the processed counter hardly moved: overloaded when more than half of what came was left lying."""
    growth = float(backlog[-1] - backlog[0]) if len(backlog) else 0.0
    share = growth / max(1.0, rate * seconds)
    overloaded = share > 0.5 and growth > FEW_MESSAGES
    return Drift(overloaded, min(MAX_LOSS, share) if overloaded else 0.0, seconds)


def _judged(found: _Instants, rate: float, seconds: float) -> Drift:
    count, backlog = len(found.at), found.backlog
    drift = _growth(found)
    floor = float(backlog[: max(1, count // 3)].min())
    late_floor = float(backlog[int(count * (1 - LATE_SHARE)) :].min())
    overloaded = late_floor > floor + FLOOR_SLACK * rate * seconds and drift > MIN_DRIFT * rate
    slices, length = _slices(found)
    return Drift(overloaded, min(MAX_LOSS, max(0.0, drift / rate)), seconds, slices, length)


def _growth(found: _Instants) -> float:
    """Messages/s by which the backlog grows: between the medians of the first and the last quarter.

    Their centres are 3/4 of the span apart when there are many instants, and more when there are few: taken for 3/4 a loss of 10 %
    would read 11.3 % at 14 instants.
    """
    count, span = len(found.at), float(found.at[-1] - found.at[0])
    if span <= 0:
        return 0.0
    if count < 8:
        return float(found.backlog[-1] - found.backlog[0]) / span
    quarter = count // 2 // 2
    first, last = np.median(found.backlog[:quarter]), np.median(found.backlog[-quarter:])
    return float(last - first) / (span * (count - quarter) / (count - 1))


def _slices(found: _Instants) -> tuple[tuple[float, ...], float]:
    """The processed rate between every few instants, and how long such a slice is."""
    step = max(1, len(found.at) // SLICES)
    at, processed = found.at[::step], found.processed[::step]
    lengths = np.diff(at)
    if len(lengths) == 0 or lengths.min() <= 0:
        return (), 0.0
    return tuple((np.diff(processed) / lengths).tolist()), float(lengths.mean())
