"""The growth of the backlog at which a trial is given up, for the harness and for its simulation alike.

Two minima of the backlog are compared: the recent one, and that of the first third of the time since settling.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

HOPELESS_SHARE, HOPELESS_MESSAGES = 0.25, 10.0
"""Largest growth: a share of the messages due since settling, and messages besides."""
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
    return np.where(early, np.inf, HOPELESS_SHARE * rate * seconds + HOPELESS_MESSAGES)


def recent_seconds(interval: float) -> float:
    """Return the length of the time whose smallest backlog is the recent one; `interval` as in max_growth."""
    return max(RECENT_S, RECENT_BATCHES * interval)
