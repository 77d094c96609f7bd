"""Lateness of the load generator in a trial, and the growth of the backlog and the latency that it explains.

A generator that is late because the source did not take more shows a limit of the system; any other lateness is its
own.
"""

from msgspec.structs import replace

from bench.model.measurement import Measurement

MIN_BLOCKED_PART = 0.9
"""From this part of the lateness on, the time in which the source took no more explains it."""
MIN_LATE_PART = 0.5
"""Below this part of the growth of the unsent messages, the generator's lateness does not explain it."""
MIN_STALL_SHARE = 0.1
"""A stall of the generator below this share of the latency objective does not explain that it was missed."""

MIN_STALL_S = 0.01
"""Shorter stalls are usual: a generator waits up to a few milliseconds for the next batch."""
STALL_FACTOR = 2.0
"""A stall of a share of the window can lower the processed rate by this multiple of that share: the drift between the
first and the last quarter exaggerates it by up to 4/3, and only the longest stall of a trial is known."""


def offered_share(measurement: Measurement) -> float:
    """Return the share of the messages due in the window that had been sent at its end; one message may be late."""
    late = measurement.late * measurement.planned.rate
    return 1 - max(0.0, late - 1) / measurement.offered


def pushed_back(measurement: Measurement) -> bool:
    """Return True if the time in which the source accepted no messages explains the generator's lateness.

    Only the time since the generator was last on time counts, where it is known.
    """
    blocked = measurement.blocked if measurement.blocked_late is None else measurement.blocked_late
    return blocked >= MIN_BLOCKED_PART * measurement.late


def as_sent(measurement: Measurement) -> Measurement | None:
    """Return the measurement as if only the messages that were sent had been due; None if the generator was on time.

    Messages that the source took and has not confirmed yet are not the generator's: its own lateness must explain the
    growth of the unsent messages over the window.
    """
    planned, series = measurement.planned, measurement.series
    begin, end = planned.settle, planned.settle + planned.window
    rows = zip(series.at, series.offered, series.sent, strict=True)
    unsent = [offered - sent for at, offered, sent in rows if begin <= at <= end]
    if len(unsent) < 2 or measurement.ended != "complete" or pushed_back(measurement):
        return None
    if measurement.late * planned.rate < MIN_LATE_PART * (unsent[-1] - unsent[0]):
        return None
    return replace(measurement, series=replace(series, offered=series.sent), late=0.0)


def stall_explains(measurement: Measurement, limit: float) -> bool:
    """Return True if p99 would have met a limit in seconds without the generator's longest stall."""
    stalled, p99 = measurement.stalled or 0.0, measurement.from_due.p99
    return p99 is not None and stalled > MIN_STALL_SHARE * limit and p99 <= limit + stalled


def stall_loss(measurement: Measurement) -> float:
    """Return the largest loss, as a share of the offered rate, that a stall of the generator can explain.

    A system near its limit has nothing to do while the generator stalls, and cannot make up for it afterwards. One
    message may be late.
    """
    stalled = (measurement.stalled or 0.0) - 1 / measurement.planned.rate
    return min(1.0, STALL_FACTOR * stalled / measurement.planned.window) if stalled > MIN_STALL_S else 0.0
