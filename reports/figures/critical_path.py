"""The critical path of a traced trial by activity: over time, and beside the conventional profile of busy time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from bench.analysis.activity_graph.participation import Participation
from bench.analysis.activity_graph.summaries import activities_over_time
from bench.analysis.explanation import Explanation
from bench.runner.explanation import ExplainedTrial
from bench.units import rate_text
from reports.data.run_data import CellData, RunData
from reports.figures.figure import Picture
from reports.figures.palette import INK, PALE, SYSTEMS, is_dark

BLUE, ORANGE, GREEN, LILAC, RED, TEAL, GREY = SYSTEMS[:7]
IDLE = "#d5dae0"
STYLES: Mapping[str, tuple[str, str]] = {
    "processing": (BLUE, ""), "deserialize": (TEAL, ""), "serialize": (TEAL, "///"),
    "source-read": (ORANGE, ""), "data": (ORANGE, "///"), "buffer": (ORANGE, "..."),
    "planning": (LILAC, ""), "scheduling": (LILAC, "///"), "control": (LILAC, "..."),
    "wal-commit": (GREEN, "///"), "offset-commit": (GREEN, ""),
    "gc": (RED, ""), "shuffle-read": (RED, "///"), "shuffle-write": (RED, "..."),
    "reporting": (GREY, ""), "unknown": (GREY, "///"), "waiting": (GREY, "..."),
    "idle(trigger)": (IDLE, ""), "idle(source)": (IDLE, "///"),
}  # fmt: skip
"""Colour and hatch of each activity. The colours are those of systems, which every sight can distinguish; activities of
one colour differ by their hatch."""
MIN_LEGEND, MIN_TEXT = 0.01, 0.07
"""Shares from which on an activity is in the legend, and has its share written into its bar."""
MAX_PICTURES = 24
"""Of a run: those of the first traced cells, in the scenario's order."""


def make_critical_path_figures(run_data: RunData) -> list[Picture]:
    """Return a picture for each cell with a trace, of at most MAX_PICTURES cells."""
    traced = [(cell_data, run_data.explained.get(cell_data.cell)) for cell_data in run_data.cells]
    return [_make_picture(cell_data, explained) for cell_data, explained in traced if explained is not None][
        :MAX_PICTURES
    ]


def _make_picture(cell_data: CellData, explained: ExplainedTrial) -> Picture:
    title = f"{cell_data.cell.system}, {cell_data.point}"
    trial = explained.trial
    rate = f"trial {trial.measurement.planned.number} at {rate_text(trial.measurement.planned.rate)}"

    def draw(figure: Figure) -> None:
        figure.set_size_inches(7.4, 3.3)
        over_time, beside = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1.15))
        figure.subplots_adjust(left=0.085, right=0.77, top=0.78, bottom=0.145, wspace=0.06)
        figure.text(0.012, 0.935, title, fontsize=10.5, fontweight="bold")
        figure.text(0.012, 0.872, f"{rate}: {trial.verdict.word}", fontsize=8.5)
        draw_over_time(over_time, explained.participation)
        draw_beside_profile(beside, explained.explanation)
        figure.legend(handles=_make_handles(explained.explanation), loc="center left", bbox_to_anchor=(0.775, 0.46))

    return Picture(f"path-{cell_data.anchor.removeprefix('cell-')}", draw, f"Critical path of {title}, {rate}")


def draw_over_time(ax: Axes, participation: Participation) -> list[Artist]:
    """Draw the share of each activity in each window, empty where there is no path; return the artists."""
    windows = participation.windows
    length = windows.length / 1e9
    middle = windows.begin / 1e9 + length * (np.arange(windows.count) + 0.5)
    below, artists = np.zeros(windows.count), list[Artist]()
    for activity, shares in activities_over_time(participation).items():
        if shares.any():
            artists += ax.bar(middle, shares, 0.94 * length, bottom=below, **_style(activity))
            below += shares
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set_ylabel("share of the critical path")
    ax.set_xlabel("time since the first message was due (s)")
    ax.margins(x=0.01)
    return artists


def draw_beside_profile(ax: Axes, explanation: Explanation) -> list[Artist]:
    """Draw the shares of the critical path beside those of the busy time of all workers; return the artists."""
    rows = explanation.activities
    columns = ([row.critical for row in rows], [row.profile or 0.0 for row in rows])
    artists: list[Artist] = []
    for x, shares in enumerate(columns):
        below = 0.0
        for row, share in zip(rows, shares, strict=True):
            artists += ax.bar(x, share, 0.8, bottom=below, **_style(row.activity))
            artists += _write_share(ax, x, below + share / 2, share, row.activity)
            below += share
    ax.set_xticks([0, 1], ["critical\npath", "busy\ntime"])
    ax.tick_params(axis="x", length=0)
    return artists


def _write_share(ax: Axes, x: float, y: float, share: float, activity: str) -> Iterator[Artist]:
    if share >= MIN_TEXT:
        colour, _ = STYLES[activity]
        ink = PALE if is_dark(to_rgb(colour)) else INK
        halo = {"facecolor": colour, "edgecolor": "none", "pad": 0.8}
        yield ax.text(x, y, f"{share:.0%}", color=ink, fontsize=7.5, ha="center", va="center", bbox=halo)


def _make_handles(explanation: Explanation) -> Sequence[Patch]:
    shown = [row for row in explanation.activities if max(row.critical, row.profile or 0.0) >= MIN_LEGEND]
    return [Patch(label=row.activity, **_style(row.activity)) for row in reversed(shown)]


def _style(activity: str) -> dict[str, Any]:
    """Return the properties of a bar."""
    colour, hatch = STYLES[activity]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "#8c96a3" if colour == IDLE else PALE, "linewidth": 0.0}
