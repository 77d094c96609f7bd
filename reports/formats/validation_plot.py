"""The plot of a certificate: error, coverage and time of a search strategy, a line for each case of the kit."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.errors import UsageError
from bench.plugins.plugin import ReportPlugin
from bench.simulation.acceptance import MAX_SECONDS, MAX_SPREAD, MIN_COVERAGE
from bench.simulation.validation_report import Part, ValidationReport
from reports.figures.figure import Picture

LINE, HEAD, WIDTH = 0.23, 1.0, 9.6
"""Inches: of one case, of titles and labels, of the whole figure."""
INK, GREY, RED, BLUE = "#1d2733", "#6b7480", "#b3261e", "#2560a3"


def write(certificate: ValidationReport, file: Path) -> Path:
    """Write the plot; its kind is the file's ending, .png or .svg."""
    picture = Picture("certificate", lambda figure: _draw(figure, certificate), "Certificate of a search strategy")
    if file.suffix not in (".png", ".svg"):
        raise UsageError(f"{file}: a plot is a .png or a .svg file")
    try:
        file.write_bytes(picture.png() if file.suffix == ".png" else picture.svg().encode())
    except OSError as problem:
        raise UsageError(f"{file}: cannot be written ({problem.strerror})") from None
    return file


def _draw(figure: Figure, certificate: ValidationReport) -> None:
    parts = [part for part in certificate.parts if part.row is not None]
    figure.set_size_inches(WIDTH, HEAD + LINE * max(4, len(parts)))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(3, 1.2, 1.2))
    draw_errors(axes[0], parts)
    draw_coverage(axes[1], parts)
    draw_seconds(axes[2], parts)
    axes[0].set_yticks(range(len(parts)), [part.name for part in parts])
    axes[0].set_ylim(len(parts) - 0.4, -0.6)
    figure.suptitle(f"What the kit says of {certificate.strategy}", x=0.01, ha="left", fontweight="bold", fontsize=10.5)
    figure.tight_layout()


def draw_errors(ax: Axes, parts: Sequence[Part]) -> list[Artist]:
    """Median and 5-95 % of the errors of each case with an estimate; the band is what the gates allow."""
    band = 100 * MAX_SPREAD
    drawn: list[Artist] = [ax.axvspan(-band, band, color="#eef2f6", zorder=0), ax.axvline(0, color=GREY, linewidth=0.6)]
    for place, part in enumerate(parts):
        row = part.row
        assert row is not None
        if row.error is None or row.low_error is None or row.high_error is None:
            continue
        colour = _colour(part)
        drawn += ax.plot([100 * row.low_error, 100 * row.high_error], [place, place], color=colour)
        drawn += ax.plot([100 * row.error], [place], "o", markersize=4, color=colour)
    ax.set_xlim(-2.2 * band, 2.2 * band)
    ax.set_xlabel("error of the estimate, % (a bound lies outside)")
    return drawn


def draw_coverage(ax: Axes, parts: Sequence[Part]) -> list[Artist]:
    """In how many runs of each case the interval held the truth."""
    drawn: list[Artist] = [ax.axvline(100 * MIN_COVERAGE, color=GREY, linewidth=0.6, linestyle="--")]
    shown = [(place, part) for place, part in enumerate(parts) if part.row is not None and part.row.width is not None]
    for place, part in shown:
        assert part.row is not None
        drawn += ax.plot([100 * part.row.coverage], [place], "o", markersize=4, color=_colour(part))
    ax.set_xlim(-3, 103)
    ax.set_xlabel("covered, %")
    return drawn


def draw_seconds(ax: Axes, parts: Sequence[Part]) -> list[Artist]:
    """Seconds of system time for one answer, on average."""
    drawn: list[Artist] = [ax.axvline(MAX_SECONDS, color=GREY, linewidth=0.6, linestyle="--")]
    seconds = [part.row.seconds if part.row is not None else 0.0 for part in parts]
    drawn += ax.barh(range(len(parts)), seconds, height=0.55, color=[_colour(part) for part in parts])
    ax.set_xlabel("seconds per answer")
    return drawn


def _colour(part: Part) -> str:
    if not all(gate.passed for gate in part.gates):
        return RED
    return BLUE if part.kind != "adversary" else INK


plugin = ReportPlugin(draw_validation=write)
