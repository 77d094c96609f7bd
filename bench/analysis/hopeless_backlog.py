"""The growth of the backlog at which a trial is given up, and the time for which its drain is worth waiting.

For the harness and for its simulation alike.

Two minima of the backlog are compared: the recent one, and that of the first third of the time since settling.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.analysis.verdict import BACKLOG_GREW, Rules, judge
from bench.model.measurement import Measurement

HOPELESS_SHARE, HOPELESS_MESSAGES = 0.25, 10.0
"""Largest growth: a share of the messages due since settling, and messages besides."""
HOPELESS_BATCHES = 1.25
"""Growth that is always allowed, in messages of so many batch intervals: one batch that ends an interval late lets the
backlog grow by those of one."""
MIN_ELAPSED_S, MIN_ELAPSED_BATCHES = 2.0, 3.0
"""Seconds and batch intervals since settling, whichever are longer, before which no trial is given up."""
FALLING_SHARE = 0.9
"""Of the largest recent backlog; below it a continuous system is working its backlog off, as after a pause."""
RECENT_S, RECENT_BATCHES = 0.5, 1.5
"""Seconds and batch intervals, whichever are longer, whose smallest backlog is the recent one."""


def max_growth(elapsed: ArrayLike, rate: float, interval: float) -> NDArray[np.float64]:
    """Return the growth of the backlog, in messages, above which a trial is given up; inf while it is too early.

    Args:
        elapsed: Seconds since settling; one value or many.
        rate: Offered messages/s.
        interval: Batch interval in seconds; 0 for a continuous system.
    """
    seconds = np.asarray(elapsed, dtype=np.float64)
    early = seconds < max(MIN_ELAPSED_S, MIN_ELAPSED_BATCHES * interval)
    allowed = rate * np.maximum(HOPELESS_SHARE * seconds, HOPELESS_BATCHES * interval)
    return np.where(early, np.inf, allowed + HOPELESS_MESSAGES)


def recent_seconds(interval: float) -> float:
    """Return the length of the time whose smallest backlog is the recent one; `interval` as in max_growth."""
    return max(RECENT_S, RECENT_BATCHES * interval)


def worth_waiting(measurement: Measurement, rules: Rules, redeploy_s: float, time_left: float) -> float:
    """Return for how many seconds a drain is worth waiting: no longer than a new deployment takes, or one is of use.

    Only of a trial that is overloaded in any case, else inf: the counts of any other one must be exact.

    Args:
        measurement: At the end of the load.
        rules: Of its verdict.
        redeploy_s: Seconds that a new deployment of the cell takes.
        time_left: Seconds from the end of the load on, in which a deployment is of use.
    """
    if measurement.ended == "hopeless" or judge(measurement, rules).why == BACKLOG_GREW:
        return min(redeploy_s, max(0.0, time_left))
    return math.inf
