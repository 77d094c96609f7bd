"""A forest plot: the estimates and intervals of one cell in several runs, and their common centre."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bench.analysis.repeatability import Agreement
from bench.model.measurement import Result
from bench.units import rate_text
from reports.figures.figure import Picture
from reports.figures.palette import BLUE, PAGE_GREY, PAGE_INK

HEAD_HEIGHT, LINE_HEIGHT, WIDTH = 1.05, 0.19, 5.6
"""Inches: title and axis, one run, the whole figure."""


def make_forest_plot(number: int, agreement: Agreement, results: Sequence[tuple[str, Result]]) -> Picture:
    """Return the forest plot of one cell; `results` are the runs' names and results, in order."""
    title = f"{agreement.name}: the same cell in {agreement.runs} runs"

    def draw(figure: Figure) -> None:
        height = HEAD_HEIGHT + LINE_HEIGHT * len(results)
        figure.set_size_inches(WIDTH, height)
        ax = figure.add_axes((0.11, 0.52 / height, 0.85, LINE_HEIGHT * len(results) / height))
        figure.text(0.012, 1 - 0.24 / height, title, fontsize=10.5, fontweight="bold")
        draw_forest(ax, agreement, results)

    return Picture(f"forest-{number}", draw, title)


def draw_forest(ax: Axes, agreement: Agreement, results: Sequence[tuple[str, Result]]) -> list[Artist]:
    """Draw a line for each run, from the top, into axes whose scale is messages/s; return the artists."""
    artists: list[Artist] = [ax.axvline(agreement.centre_hz, color=PAGE_GREY, linewidth=0.8, linestyle="--")]
    for y, (_, result) in enumerate(results):
        artists += ax.plot([result.low_hz or 0, result.high_hz or 0], [y, y], color=BLUE, linewidth=1.3)
        artists += ax.plot([result.estimate_hz or 0], [y], "o", markersize=4, color=PAGE_INK)
    ax.set_yticks(range(len(results)), [name for name, _ in results], fontsize=7)
    ax.set_ylim(len(results) - 0.4, -0.6)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda rate, _: rate_text(rate)))
    ax.set_xlabel("messages/s, estimate and 95 % interval")
    return artists
