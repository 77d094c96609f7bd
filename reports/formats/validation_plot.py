"""The plot of a validation report: error, coverage and time of a search strategy, a line for each simulated case."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.errors import UsageError
from bench.simulation.acceptance import MAX_SECONDS, MAX_SPREAD, MIN_COVERAGE
from bench.simulation.validation_report import Part, ValidationReport
from reports.figures.figure import Picture

LINE_HEIGHT, HEAD_HEIGHT, WIDTH = 0.23, 1.0, 9.6
"""Inches: one case, titles and labels, the whole figure."""
INK, GREY, RED, BLUE = "#1d2733", "#6b7480", "#b3261e", "#2560a3"


def write(report: ValidationReport, file: Path) -> Path:
    """Write the plot of a validation report as .png or .svg; return its path.

    Raises:
        UsageError: the file has another suffix or cannot be written.
    """
    picture = Picture("certificate", lambda figure: _draw(figure, report), "Validation of a search strategy")
    if file.suffix not in (".png", ".svg"):
        raise UsageError(f"{file}: a plot is a .png or a .svg file")
    try:
        file.write_bytes(picture.png() if file.suffix == ".png" else picture.svg().encode())
    except OSError as problem:
        raise UsageError(f"{file}: cannot be written ({problem.strerror})") from None
    return file


def _draw(figure: Figure, report: ValidationReport) -> None:
    parts = [part for part in report.parts if part.row is not None]
    figure.set_size_inches(WIDTH, HEAD_HEIGHT + LINE_HEIGHT * max(4, len(parts)))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(3, 1.2, 1.2))
    draw_errors(axes[0], parts)
    draw_coverage(axes[1], parts)
    draw_seconds(axes[2], parts)
    axes[0].set_yticks(range(len(parts)), [part.name for part in parts])
    axes[0].set_ylim(len(parts) - 0.4, -0.6)
    figure.suptitle(
        f"Validation of {report.strategy} on simulated systems", x=0.01, ha="left", fontweight="bold", fontsize=10.5
    )
    figure.tight_layout()


def draw_errors(ax: Axes, parts: Sequence[Part]) -> list[Artist]:
    """Draw median and 5-95 % range of the errors of each case, over the accepted band; return the artists."""
    band = 100 * MAX_SPREAD
    artists: list[Artist] = [
        ax.axvspan(-band, band, color="#eef2f6", zorder=0),
        ax.axvline(0, color=GREY, linewidth=0.6),
    ]
    for y, part in enumerate(parts):
        row = part.row
        assert row is not None
        if row.error is None or row.low_error is None or row.high_error is None:
            continue
        colour = _colour(part)
        artists += ax.plot([100 * row.low_error, 100 * row.high_error], [y, y], color=colour)
        artists += ax.plot([100 * row.error], [y], "o", markersize=4, color=colour)
    ax.set_xlim(-2.2 * band, 2.2 * band)
    ax.set_xlabel("error of the estimate, % (bounds lie outside)")
    return artists


def draw_coverage(ax: Axes, parts: Sequence[Part]) -> list[Artist]:
    """Draw the share of runs of each case whose interval contains the truth; return the artists."""
    artists: list[Artist] = [ax.axvline(100 * MIN_COVERAGE, color=GREY, linewidth=0.6, linestyle="--")]
    shown = [(y, part) for y, part in enumerate(parts) if part.row is not None and part.row.width is not None]
    for y, part in shown:
        assert part.row is not None
        artists += ax.plot([100 * part.row.coverage], [y], "o", markersize=4, color=_colour(part))
    ax.set_xlim(-3, 103)
    ax.set_xlabel("coverage, %")
    return artists


def draw_seconds(ax: Axes, parts: Sequence[Part]) -> list[Artist]:
    """Draw the mean seconds of system time for one result; return the artists."""
    artists: list[Artist] = [ax.axvline(MAX_SECONDS, color=GREY, linewidth=0.6, linestyle="--")]
    seconds = [part.row.seconds if part.row is not None else 0.0 for part in parts]
    artists += ax.barh(range(len(parts)), seconds, height=0.55, color=[_colour(part) for part in parts])
    ax.set_xlabel("seconds per result")
    return artists


def _colour(part: Part) -> str:
    if not all(gate.passed for gate in part.gates):
        return RED
    return BLUE if part.kind != "adversary" else INK
