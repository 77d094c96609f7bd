"""A trial's timeline as a few hundred bytes of SVG paths: a page holds a thousand of them where it could hold fifty figures."""

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10

from msgspec import Struct

from reports.figures.timeline import Trace, count_text

WIDTH, TALL, LOW = 600, 190, 90
"""Of the drawing, of its upper part (counters) and its lower part (backlog), in units of the SVG's view box."""
TOLERANCE = 0.7


class Mark(Struct, frozen=True):
    """A tick: its place in view box units, and what it says."""

    at: int
    text: str


class Sketch(Struct, frozen=True):
    """Paths and ticks of one timeline; templates/sketch.svg puts them into a drawing."""

    offered: str
    sent: str
    processed: str
    backlog: str
    window: tuple[int, int]
    times: tuple[Mark, ...]
    counts: tuple[Mark, ...]
    left: tuple[Mark, ...]
    """ticks of the backlog"""


def sketch_of(trace: Trace) -> Sketch | None:
    """The sketch of a timeline; None when its trial has no counters."""
    if not trace.at or trace.at[-1] <= 0:
        return None
    span = trace.at[-1]
    xs = [WIDTH * at / span for at in trace.at]
    most, deepest = max(1, *trace.offered, *trace.sent, *trace.processed), max(1, *trace.backlog)
    offered, sent, processed = (
        path_of(xs, [TALL * (1 - count / most) for count in counts])
        for counts in (trace.offered, trace.sent, trace.processed)
    )
    begin, end = (round(WIDTH * min(at, span) / span) for at in trace.window)
    return Sketch(
        offered, sent, processed,
        backlog=path_of(xs, [LOW * (1 - count / deepest) for count in trace.backlog]),
        window=(begin, end - begin),
        times=tuple(Mark(round(WIDTH * at / span), f"{at:g}") for at in _ticks(span, 6)),
        counts=tuple(Mark(round(TALL * (1 - count / most)), count_text(count)) for count in _ticks(most, 3)),
        left=tuple(Mark(round(LOW * (1 - count / deepest)), count_text(count)) for count in _ticks(deepest, 1)),
    )  # fmt: skip


def _ticks(most: float, count: int) -> list[float]:
    """Round numbers from 0 to at most `most`, about `count` steps of them."""
    exact = most / count
    power = 10.0 ** floor(log10(exact))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= exact * 0.7)
    return [n * step for n in range(int(most / step + 1e-9) + 1)]


def path_of(xs: Sequence[float], ys: Sequence[float]) -> str:
    """An SVG path in whole units and relative moves, without the points that lie on the line anyway."""
    points = [(round(x), round(y)) for x, y in _straightened(list(zip(xs, ys, strict=True)))]
    moves = (f"{x - before_x} {y - before_y}" for (before_x, before_y), (x, y) in pairwise(points))
    return f"M{points[0][0]} {points[0][1]}l{' '.join(moves)}".replace(" -", "-")


def _straightened(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a line without those that it passes closely: the swing filter (Elmeleegy et al., VLDB 2009)."""
    cached_resource = [points[0]]
    low, high = float("-inf"), float("inf")
    for last, point in pairwise(points):
        x, y = cached_resource[-1]
        run = point[0] - x
        if run <= 0:
            continue
        slope = (point[1] - y) / run
        if not low <= slope <= high:
            cached_resource.append(last)
            x, y = last
            run = max(1e-9, point[0] - x)
            low, high = float("-inf"), float("inf")
        low, high = max(low, (point[1] - TOLERANCE - y) / run), min(high, (point[1] + TOLERANCE - y) / run)
    return [*cached_resource, points[-1]]
