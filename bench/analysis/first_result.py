"""The time until a system shows its first result, which is no overload.

A system with a latency L processes nothing for L, and keeps up with the load afterwards: its backlog grows to rate x L
and no further (Little's law). So the backlog of a continuous system tells from 1.5 times that time on. Results of
micro-batches wait for their batch; a trial settles for an interval at least.
"""

from collections.abc import Sequence

from bench.model.measurement import Measurement

FILL_FACTOR = 1.5
"""Of the time until the first result, after which the backlog is that of a steady state."""
MAX_WAIT_S = 10.0
"""Time without a result or without any progress from which on a trial may be given up."""


def first_result_s(at: Sequence[float], offered: Sequence[int], processed: Sequence[int], rate: float) -> float | None:
    """Return the least seconds from the first due message to the first result; None without a result.

    The result came after the row before: rows of another tool may be ten seconds apart.

    Args:
        at: Time of each row in seconds.
        offered: Messages due by then.
        processed: Messages processed by then.
        rate: Offered messages/s.
    """
    done = next((before for before, count in zip([0.0, *at], processed, strict=False) if count), None)
    due = next((row for row in zip([0.0, *at], at, offered, strict=False) if row[2]), None)
    return None if done is None or due is None else max(0.0, done - first_due_s(*due, rate))


def first_due_s(before: float, at: float, offered: int, rate: float) -> float:
    """Return when the first message was due, of the first row with any: after the row before, in seconds."""
    return max(before, at - offered / rate)


def latency_of(measurement: Measurement) -> float:
    """Return the seconds until the first result of a continuous system's trial; 0 without one, and for batches."""
    series = measurement.series
    if measurement.batch_interval > 0:
        return 0.0
    return first_result_s(series.at, series.offered, series.processed, measurement.planned.rate) or 0.0


def steady_from(measurement: Measurement) -> float:
    """Return the seconds since the first due time from which on the backlog of a trial tells."""
    return max(measurement.planned.settle, FILL_FACTOR * latency_of(measurement))
