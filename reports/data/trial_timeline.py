"""The counters of one trial over time, prepared for drawing as a figure and as the small SVG of the page."""

from collections.abc import Sequence

from msgspec import Struct

from bench.units import rate_text
from reports.data.run_data import JudgedTrial

MAX_POINTS = 200


class TrialTimeline(Struct, frozen=True):
    """The thinned counters of one trial: seconds since the first message was due, and messages since then."""

    at: tuple[float, ...]
    offered: tuple[int, ...]
    sent: tuple[int, ...]
    processed: tuple[int, ...]
    backlog: tuple[int, ...]
    """offered - processed, at least 0"""
    window: tuple[float, float]
    """begin and end of the measured window, in seconds"""

    @property
    def max_count(self) -> int:
        """The largest value of the three counters, at least 1."""
        return max(1, *self.offered, *self.sent, *self.processed)

    @property
    def max_backlog(self) -> int:
        """The largest backlog, at least 1."""
        return max(1, *self.backlog)


def make_trial_timeline(trial: JudgedTrial, length: int = MAX_POINTS) -> TrialTimeline:
    """Return the counters of a trial at no more than `length` instants, with the peaks and troughs of the backlog."""
    series, planned = trial.measurement.series, trial.measurement.planned
    backlog = [max(0, offered - processed) for offered, processed in zip(series.offered, series.processed, strict=True)]
    rows = _choose_rows(backlog, length)
    columns = (series.offered, series.sent, series.processed, backlog)
    offered, sent, processed, left = (tuple(column[n] for n in rows) for column in columns)
    at = tuple(series.at[n] for n in rows)
    return TrialTimeline(at, offered, sent, processed, left, (planned.settle, planned.settle + planned.window))


def _choose_rows(values: Sequence[int], length: int) -> list[int]:
    """Return the indices of the first and last value, and of the extremes of (length - 2) / 2 equal parts."""
    if len(values) <= length:
        return list(range(len(values)))
    parts = max(1, (length - 2) // 2)
    rows = {0, len(values) - 1}
    for part in range(parts):
        span = range(part * len(values) // parts, (part + 1) * len(values) // parts)
        rows |= {min(span, key=values.__getitem__), max(span, key=values.__getitem__)}
    return sorted(rows)


def describe_trial(trial: JudgedTrial) -> str:
    """Return a trial's number, rate and verdict as one line."""
    planned, verdict = trial.measurement.planned, trial.verdict
    why = f" ({verdict.why})" if verdict.why else ""
    return f"trial {planned.number} at {rate_text(planned.rate)}: {verdict.word}{why}"
