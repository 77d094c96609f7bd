"""Frequency over message size at one CPU cost: a line for each system, its intervals, and the bounds of theory as lines."""

import math
from collections.abc import Sequence
from itertools import cycle

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter
from msgspec import Struct

from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import cpu_bound, network_bound, rate_of
from reports.data.run_data import RunData
from reports.figures.figure import Picture
from reports.figures.palette import colours_of

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p", "h")
"""Besides the colours, so that a line is also told by its shape."""
MOST = 6
"""Figures of a run: with more costs, some between the first and the last are left out."""
THEORY = "#4a5563"
DASHES = ((0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (8, 2, 1, 2)))
"""By which bounds are told apart."""
MARKED = {"lower-bound": "↑", "upper-bound": "↓", "unstable": "?"}
"""By status, where a point is not simply measured."""


class Point(Struct, frozen=True):
    """One cell on a line; `low` and `high` are the ends of its interval, None where there is none."""

    size: int
    rate: float
    low: float | None
    high: float | None
    bound: str
    """what its rate is marked with, where it is not simply measured"""


class Line(Struct, frozen=True):
    """One system."""

    system: str
    points: tuple[Point, ...]


class Curves(Struct, frozen=True):
    """What one figure shows: lines, and (name, [(size, messages/s)]) for each bound that is known."""

    cost: float
    lines: tuple[Line, ...]
    bounds: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]


def curves_of(run_data: RunData, cost: float) -> Curves:
    """The lines and the bounds at one cost."""
    lines = tuple(Line(system, _points_of(run_data, system, cost)) for system in run_data.systems)
    ends = (float(run_data.sizes[0]) / 1.3, float(run_data.sizes[-1]) * 1.3)
    network = [(size, network_bound(run_data, size)) for size in ends]
    frameworks = dict.fromkeys(system.partition("/")[0] for system in run_data.systems)
    found = {framework: cpu_bound(run_data, framework, cost) for framework in frameworks}
    alike = len(set(found.values())) == 1
    bounds: list[tuple[str, tuple[tuple[float, float], ...]]] = []
    for cpu in dict.fromkeys(found.values()):
        if cpu is not None:
            of = "" if alike else f" ({', '.join(framework for framework, its in found.items() if its == cpu)})"
            bounds.append((f"CPU bound: cores ÷ cost{of}", tuple((size, cpu) for size in ends)))
    if filled := tuple((size, hertz) for size, hertz in network if hertz is not None):
        bounds.append(("network bound: bandwidth ÷ size", filled))
    bounds += _soft_bounds_of(run_data, cost)
    seen = tuple(line for line in lines if any(point.rate > 0 for point in line.points))
    return Curves(cost, seen, tuple(bounds))


def _soft_bounds_of(run_data: RunData, cost: float) -> list[tuple[str, tuple[tuple[float, float], ...]]]:
    """Return the soft bounds of each source over the message sizes; systems of one source have the same."""
    found: dict[str, dict[float, float]] = {}
    for known in run_data.cells:
        if known.result is None or known.cell.cpu_seconds != cost:
            continue
        for bound in known.result.soft_bounds:
            name = f"{known.cell.source}’s {bound.name}"
            found.setdefault(name, {})[known.cell.message_bytes] = bound.hz
    return [(name, tuple(sorted(points.items()))) for name, points in sorted(found.items())]


def _points_of(run_data: RunData, system: str, cost: float) -> tuple[Point, ...]:
    points = []
    for known in run_data.of_system(system):
        result = known.result
        if known.cell.cpu_seconds != cost:
            continue
        rate = None
        if result is not None and result.status not in ("failed", "unsupported"):
            rate = result.high_hz if result.status == "upper-bound" else rate_of(result)
        if result is None or not rate:
            points.append(
                Point(known.cell.message_bytes, math.nan, None, None, "")
            )  # a gap in the line, not a straight way over it
        else:
            points.append(
                Point(known.cell.message_bytes, rate, result.low_hz, result.high_hz, MARKED.get(result.status, ""))
            )
    return tuple(sorted(points, key=lambda point: point.size))


def curve_pictures(run_data: RunData) -> list[Picture]:
    """A picture for each cost, of at most MOST; none where there is only one size."""
    if len(run_data.sizes) < 2:
        return []
    costs = run_data.costs
    chosen = (
        sorted({costs[round(n * (len(costs) - 1) / (MOST - 1))] for n in range(MOST)}) if len(costs) > MOST else costs
    )
    found = [curves_of(run_data, cost) for cost in chosen]
    return [_picture(run_data, number, curves) for number, curves in enumerate(found) if curves.lines]


def _picture(run_data: RunData, number: int, curves: Curves) -> Picture:
    title = f"Maximum frequency over message size, {seconds_text(curves.cost)} a message"

    def draw(figure: Figure) -> None:
        above = 0.45 + 0.17 * -(-(len(curves.lines) + len(curves.bounds)) // 3)
        height = 3.0 + above
        figure.set_size_inches(5.6, height)
        ax = figure.add_axes((0.145, 0.5 / height, 0.835, 2.5 / height))
        figure.text(0.012, 1 - 0.24 / height, title, fontsize=10.5, fontweight="bold")
        draw_curves(ax, curves, run_data.systems)
        label_sizes(ax, run_data.sizes)

    return Picture(f"curves-{number}", draw, title)


def draw_curves(ax: Axes, curves: Curves, systems: Sequence[str]) -> list[Artist]:
    """Draw lines and bounds into axes with two logarithmic scales; a triangle that points away says "at least" or "at most".

    How far the sizes reach is for label_sizes to say: a run that has just begun has one point, from which no scale follows.
    """
    ax.set_xscale("log")
    ax.set_autoscalex_on(False)
    ax.set_yscale("log")
    artists: list[Artist] = []
    for (name, points), dashes in zip(curves.bounds, cycle(DASHES)):
        artists += ax.plot(
            *zip(*points, strict=True), color=THEORY, linewidth=1.1, linestyle=dashes, label=name, zorder=1
        )
    for line in curves.lines:
        artists += _draw_line(
            ax, line, colours_of(systems)[line.system], MARKERS[systems.index(line.system) % len(MARKERS)]
        )
    ax.margins(y=0.13)
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0), numticks=9))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: rate_text(rate)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(visible=True)
    ax.set_axisbelow(True)
    ax.set_xlabel("message size (bytes)")
    ax.set_ylabel("messages/s")
    artists.append(ax.legend(loc="lower left", bbox_to_anchor=(-0.012, 0.99), ncols=3, fontsize=7.6, columnspacing=1.1))
    return artists


def _draw_line(ax: Axes, line: Line, colour: str, marker: str) -> list[Artist]:
    sizes, rates = [point.size for point in line.points], [point.rate for point in line.points]
    down = [max(0.0, point.rate - (point.low if point.low else point.rate)) for point in line.points]
    up = [max(0.0, (point.high if point.high else point.rate) - point.rate) for point in line.points]
    drawn = ax.errorbar(
        sizes, rates, yerr=(down, up), color=colour, marker=marker, markersize=4.4, linewidth=1.3, elinewidth=0.9, capsize=2.2,
        label=line.system, zorder=3,
    )  # fmt: skip
    marks = [
        ax.annotate(
            point.bound, (point.size, point.rate), (0, -9 if point.bound == "↓" else 9), textcoords="offset points",
            color=colour, fontsize=9, ha="center", va="center", fontweight="bold",
        )
        for point in line.points if point.bound
    ]  # fmt: skip
    return [*drawn.get_children(), *marks]


def label_sizes(ax: Axes, sizes: Sequence[int]) -> None:
    """Ticks at the sizes that were measured, as many as have room."""
    step = max(1, round(len(sizes) / 8))
    ax.xaxis.set_major_locator(FixedLocator([float(size) for size in sizes[::step]]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
    ax.xaxis.set_minor_locator(FixedLocator([]))
    ax.set_xlim(sizes[0] / 1.35, sizes[-1] * 1.35)
