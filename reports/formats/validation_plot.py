"""Plot of a validation report: error, coverage and time of a search strategy, a line for each case."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.plugins.plugin import ReportPlugin
from bench.simulation.acceptance import MAX_SECONDS, MAX_SPREAD, MIN_COVERAGE
from bench.simulation.validation_report import CaseReport, ValidationReport
from reports.figures.figure import Picture
from reports.figures.palette import BLUE, PAGE_GREY, PAGE_INK, RED

LINE, HEAD, WIDTH = 0.23, 1.0, 9.6
"""Inches: of one case, of titles and labels, of the whole figure."""


def write(report: ValidationReport, file: Path) -> Path:
    """Write the plot; its kind is the file's ending, .png or .svg."""
    picture = Picture("validation", lambda figure: _draw(figure, report), "Validation of a search strategy")
    return picture.save(file)


def _draw(figure: Figure, report: ValidationReport) -> None:
    cases = [case for case in report.cases if case.summary is not None]
    figure.set_size_inches(WIDTH, HEAD + LINE * max(4, len(cases)))
    axes = figure.subplots(1, 3, sharey=True, width_ratios=(3, 1.2, 1.2))
    draw_errors(axes[0], cases)
    draw_coverage(axes[1], cases)
    draw_seconds(axes[2], cases)
    axes[0].set_yticks(range(len(cases)), [case.name for case in cases])
    axes[0].set_ylim(len(cases) - 0.4, -0.6)
    figure.suptitle(
        f"Validation of {report.strategy} on simulated systems", x=0.01, ha="left", fontweight="bold", fontsize=10.5
    )
    figure.tight_layout()


def draw_errors(ax: Axes, cases: Sequence[CaseReport]) -> list[Artist]:
    """Draw the median and 5-95 % of the errors of each case with an estimate; the band is what the criteria allow."""
    band = 100 * MAX_SPREAD
    drawn: list[Artist] = [
        ax.axvspan(-band, band, color="#eef2f6", zorder=0),
        ax.axvline(0, color=PAGE_GREY, linewidth=0.6),
    ]
    for index, case in enumerate(cases):
        summary = case.summary
        assert summary is not None
        if summary.error is None or summary.low_error is None or summary.high_error is None:
            continue
        colour = _colour(case)
        drawn += ax.plot([100 * summary.low_error, 100 * summary.high_error], [index, index], color=colour)
        drawn += ax.plot([100 * summary.error], [index], "o", markersize=4, color=colour)
    ax.set_xlim(-2.2 * band, 2.2 * band)
    ax.set_xlabel("error of the estimate, % (a bound lies outside)")
    return drawn


def draw_coverage(ax: Axes, cases: Sequence[CaseReport]) -> list[Artist]:
    """Draw the share of runs of each case whose interval contains the truth."""
    drawn: list[Artist] = [ax.axvline(100 * MIN_COVERAGE, color=PAGE_GREY, linewidth=0.6, linestyle="--")]
    shown = [
        (index, case)
        for index, case in enumerate(cases)
        if case.summary is not None and case.summary.half_width is not None
    ]
    for index, case in shown:
        assert case.summary is not None
        drawn += ax.plot([100 * case.summary.coverage], [index], "o", markersize=4, color=_colour(case))
    ax.set_xlim(-3, 103)
    ax.set_xlabel("coverage, %")
    return drawn


def draw_seconds(ax: Axes, cases: Sequence[CaseReport]) -> list[Artist]:
    """Draw the mean seconds of system time of one search."""
    drawn: list[Artist] = [ax.axvline(MAX_SECONDS, color=PAGE_GREY, linewidth=0.6, linestyle="--")]
    seconds = [case.summary.seconds if case.summary is not None else 0.0 for case in cases]
    drawn += ax.barh(range(len(cases)), seconds, height=0.55, color=[_colour(case) for case in cases])
    ax.set_xlabel("seconds per search")
    return drawn


def _colour(case: CaseReport) -> str:
    if not all(criterion.passed for criterion in case.criteria):
        return RED
    return BLUE if case.kind != "adversary" else PAGE_INK


plugin = ReportPlugin(draw_validation=write)
