"""Throughput over message size at one CPU cost: lines with intervals, and theoretical bounds as dashed lines."""

import math
from collections.abc import Sequence
from itertools import cycle

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter
from msgspec import Struct

from bench.analysis.intervals import has_bracket
from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import cpu_bound, get_shown_rate, network_bound
from reports.data.labels import WITHOUT_RATE
from reports.data.run_data import CellData, RunData
from reports.figures.figure import Picture
from reports.figures.palette import assign_colours

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p", "h")
"""Of the systems, so that lines differ not only in colour."""
MAX_FIGURES = 6
"""Of a run; with more CPU costs, some between the first and the last are left out."""
BOUND_COLOUR = "#4a5563"
DASHES = ((0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (8, 2, 1, 2)))
"""Of the bounds, so that they can be distinguished."""
MAX_DODGE, MAX_SPREAD = 0.008, 0.03
"""Distance of two systems at one size, and of all of them, as shares of the range of sizes (logarithms)."""
MIN_RANGE = 1.2
"""Of the rates of a figure: where all are equal, there is as much below and above them."""
MARKS = {"lower-bound": "↑", "upper-bound": "↓", "unstable": "?"}
"""By status, if a point is not measured."""


BoundLine = tuple[str, tuple[tuple[float, float], ...]]
"""A name, and points of (bytes, messages/s)."""


class Point(Struct, frozen=True):
    """One cell on a line: its rate in messages/s, and the ends of its interval or None."""

    size: int
    rate: float
    low: float | None
    high: float | None
    mark: str
    """see MARKS"""
    bracket: bool = False
    """the ends are no confidence limits"""


class Line(Struct, frozen=True):
    """The line of one system."""

    system: str
    points: tuple[Point, ...]


class Curves(Struct, frozen=True):
    """The content of one figure: lines, and (name, [(size, messages/s)]) for each known bound."""

    cost: float
    lines: tuple[Line, ...]
    bounds: tuple[BoundLine, ...]


def collect_curves(run_data: RunData, cost: float) -> Curves:
    """Return the lines and the bounds at one CPU cost."""
    lines = tuple(Line(system, _collect_points(run_data, system, cost)) for system in run_data.systems)
    rated = tuple(line for line in lines if any(point.rate > 0 for point in line.points))
    bounds = [*_collect_hard_bounds(run_data, cost), *_collect_soft_bounds(run_data, cost)]
    return Curves(cost, rated, tuple(bounds))


def _collect_hard_bounds(run_data: RunData, cost: float) -> list[BoundLine]:
    """Return the CPU bounds of the frameworks, and the network bound."""
    ends = (float(run_data.sizes[0]) / 1.3, float(run_data.sizes[-1]) * 1.3)
    frameworks = dict.fromkeys(system.partition("/")[0] for system in run_data.systems)
    by_framework = {framework: cpu_bound(run_data, framework, cost) for framework in frameworks}
    distinct = dict.fromkeys(by_framework.values())
    bounds: list[BoundLine] = []
    for cpu in distinct:
        if cpu is not None:
            names = ", ".join(framework for framework, bound in by_framework.items() if bound == cpu)
            bounds.append(
                (
                    f"CPU bound: cores ÷ cost{f' ({names})' if len(distinct) > 1 else ''}",
                    tuple((size, cpu) for size in ends),
                )
            )
    network = [(size, network_bound(run_data, size)) for size in ends]
    if filled := tuple((size, hz) for size, hz in network if hz is not None):
        bounds.append(("network bound: bandwidth ÷ size", filled))
    return bounds


def _collect_soft_bounds(run_data: RunData, cost: float) -> list[BoundLine]:
    """Return the soft bounds of each source over the sizes; all systems of a source have the same."""
    points: dict[str, dict[float, float]] = {}
    for cell_data in run_data.cells:
        if cell_data.result is None or cell_data.cell.cpu_seconds != cost:
            continue
        for bound in cell_data.result.soft_bounds:
            name = f"{cell_data.cell.source}’s {bound.name}"
            points.setdefault(name, {})[cell_data.cell.message_bytes] = bound.hz
    return [(name, tuple(sorted(by_size.items()))) for name, by_size in sorted(points.items())]


def _collect_points(run_data: RunData, system: str, cost: float) -> tuple[Point, ...]:
    cells = [cell_data for cell_data in run_data.of_system(system) if cell_data.cell.cpu_seconds == cost]
    return tuple(sorted((_make_point(cell_data) for cell_data in cells), key=lambda point: point.size))


def _make_point(cell_data: CellData) -> Point:
    """Return the point of a cell; a cell without a rate is a gap in the line (NaN)."""
    size, result = cell_data.cell.message_bytes, cell_data.result
    if result is None or result.status in WITHOUT_RATE:
        return Point(size, math.nan, None, None, "")
    rate = get_shown_rate(result)
    if not rate:
        return Point(size, math.nan, None, None, "")
    return Point(size, rate, result.low_hz, result.high_hz, MARKS.get(result.status, ""), has_bracket(result))


def make_rate_curves(run_data: RunData) -> list[Picture]:
    """Return a picture for each CPU cost, at most MAX_FIGURES; none if there is only one message size."""
    if len(run_data.sizes) < 2:
        return []
    costs = run_data.costs
    chosen = (
        sorted({costs[round(n * (len(costs) - 1) / (MAX_FIGURES - 1))] for n in range(MAX_FIGURES)})
        if len(costs) > MAX_FIGURES
        else costs
    )
    every = [collect_curves(run_data, cost) for cost in chosen]
    return [_make_picture(run_data, number, curves) for number, curves in enumerate(every) if curves.lines]


def _make_picture(run_data: RunData, number: int, curves: Curves) -> Picture:
    title = f"Maximum throughput over message size, {seconds_text(curves.cost)} a message"

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
    """Draw lines and bounds into axes with two logarithmic scales; return the artists.

    label_sizes sets the range of sizes: a run that has just begun has one point, which gives no range.
    """
    ax.set_xscale("log")
    ax.set_autoscalex_on(False)
    ax.set_yscale("log")
    artists: list[Artist] = []
    for (name, points), dashes in zip(curves.bounds, cycle(DASHES)):
        artists += ax.plot(
            *zip(*points, strict=True), color=BOUND_COLOUR, linewidth=1.1, linestyle=dashes, label=name, zorder=1
        )
    sizes = [point.size for line in curves.lines for point in line.points]
    share = min(MAX_DODGE, MAX_SPREAD / max(1, len(systems) - 1))
    step = share * math.log(max(sizes) / min(sizes)) if sizes else 0.0
    for line in curves.lines:
        number = systems.index(line.system)
        shift = math.exp(step * (number - (len(systems) - 1) / 2))
        artists += _draw_line(
            ax, line, assign_colours(systems)[line.system], MARKERS[number % len(MARKERS)], shift=shift
        )
    ax.margins(y=0.13)
    low, high = ax.dataLim.intervaly
    if 0 < high < MIN_RANGE * low:  # before matplotlib looks for a range, and warns where there is none
        ax.set_autoscaley_on(False)
        ax.set_ylim(low / MIN_RANGE, high * MIN_RANGE)
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


def _draw_line(ax: Axes, line: Line, colour: str, marker: str, *, shift: float) -> list[Artist]:
    """Draw a line with its intervals; sizes are multiplied by `shift`, so that equal rates do not hide each other."""
    sizes, rates = [shift * point.size for point in line.points], [point.rate for point in line.points]
    down = [max(0.0, point.rate - (point.low if point.low else point.rate)) for point in line.points]
    up = [max(0.0, (point.high if point.high else point.rate) - point.rate) for point in line.points]
    drawn = ax.errorbar(
        sizes, rates, yerr=(down, up), color=colour, marker=marker, markersize=4.4, linewidth=1.3, elinewidth=0.9,
        capsize=2.2, label=line.system, zorder=3,
    )  # fmt: skip
    if any(point.bracket for point in line.points):
        for bars in drawn[2]:
            bars.set_linestyle((0, (1, 1)))
    marks = [
        ax.annotate(
            point.mark, (shift * point.size, point.rate), (0, -9 if point.mark == "↓" else 9),
            textcoords="offset points", color=colour, fontsize=9, ha="center", va="center", fontweight="bold",
        )
        for point in line.points if point.mark
    ]  # fmt: skip
    return [*drawn.get_children(), *marks]


def label_sizes(ax: Axes, sizes: Sequence[int]) -> None:
    """Set the range of the x axis, and ticks at measured sizes, about eight of them."""
    step = max(1, round(len(sizes) / 8))
    ax.xaxis.set_major_locator(FixedLocator([float(size) for size in sizes[::step]]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
    ax.xaxis.set_minor_locator(FixedLocator([]))
    ax.set_xlim(sizes[0] / 1.35, sizes[-1] * 1.35)
