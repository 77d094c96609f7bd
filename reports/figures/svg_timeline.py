"""The timeline of one trial as SVG paths of a few hundred bytes, so that a page can have a thousand of them."""

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10

from msgspec import Struct

from reports.data.labels import format_count
from reports.data.trial_timeline import TrialTimeline

WIDTH, COUNTS_HEIGHT, BACKLOG_HEIGHT = 600, 190, 90
"""Width of the drawing, and heights of its parts (counters above, backlog below), in units of the SVG's view box."""
TOLERANCE = 0.7
"""Distance in view box units by which a simplified line may miss a point."""


class Tick(Struct, frozen=True):
    """A tick of an axis: its position in view box units, and its label."""

    at: int
    text: str


class SvgTimeline(Struct, frozen=True):
    """Paths and ticks of one timeline; templates/report.js draws them."""

    offered: str
    sent: str
    processed: str
    backlog: str
    window: tuple[int, int]
    """left edge and width"""
    times: tuple[Tick, ...]
    counts: tuple[Tick, ...]
    backlogs: tuple[Tick, ...]


def make_svg_timeline(timeline: TrialTimeline) -> SvgTimeline | None:
    """Return the paths of a timeline; None if its trial has no counters."""
    if not timeline.at or timeline.at[-1] <= 0:
        return None
    span = timeline.at[-1]
    xs = [WIDTH * at / span for at in timeline.at]
    max_count, max_backlog = timeline.max_count, timeline.max_backlog
    offered, sent, processed = (
        make_path(xs, [COUNTS_HEIGHT * (1 - count / max_count) for count in counts])
        for counts in (timeline.offered, timeline.sent, timeline.processed)
    )
    begin, end = (round(WIDTH * min(at, span) / span) for at in timeline.window)
    return SvgTimeline(
        offered, sent, processed,
        backlog=make_path(xs, [BACKLOG_HEIGHT * (1 - count / max_backlog) for count in timeline.backlog]),
        window=(begin, end - begin),
        times=tuple(Tick(round(WIDTH * at / span), f"{at:g}") for at in _choose_ticks(span, 6)),
        counts=_make_count_ticks(max_count, 3, COUNTS_HEIGHT),
        backlogs=_make_count_ticks(max_backlog, 1, BACKLOG_HEIGHT),
    )  # fmt: skip


def _make_count_ticks(max_count: int, steps: int, height: int) -> tuple[Tick, ...]:
    return tuple(
        Tick(round(height * (1 - count / max_count)), format_count(count)) for count in _choose_ticks(max_count, steps)
    )


def _choose_ticks(end: float, steps: int) -> list[float]:
    """Return round numbers from 0 to at most `end`, in about that many steps."""
    exact = end / steps
    power = 10.0 ** floor(log10(exact))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= exact * 0.7)
    return [n * step for n in range(int(end / step + 1e-9) + 1)]


def make_path(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return an SVG path through the points, simplified, in whole units and relative moves."""
    points = [(round(x), round(y)) for x, y in _simplify(list(zip(xs, ys, strict=True)))]
    moves = (f"{x - before_x} {y - before_y}" for (before_x, before_y), (x, y) in pairwise(points))
    return f"M{points[0][0]} {points[0][1]}l{' '.join(moves)}".replace(" -", "-")


def _simplify(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points without those near the line: the swing filter (Elmeleegy et al., VLDB 2009)."""
    corners = [points[0]]
    low, high = float("-inf"), float("inf")
    for last, point in pairwise(points):
        x, y = corners[-1]
        run = point[0] - x
        if run <= 0:
            continue
        slope = (point[1] - y) / run
        if not low <= slope <= high:
            corners.append(last)
            x, y = last
            run = max(1e-9, point[0] - x)
            low, high = float("-inf"), float("inf")
        low, high = max(low, (point[1] - TOLERANCE - y) / run), min(high, (point[1] + TOLERANCE - y) / run)
    return [*corners, points[-1]]
