"""Percentile curves of latency at shares of the confirmed rate, from three starting points."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import Struct

from bench.analysis.histogram import KINDS, Percentile, histogram_of, percentiles
from bench.storage.series_files import read_latencies
from bench.units import rate_text
from reports.data.labels import format_duration
from reports.data.run_data import CellData, JudgedTrial, RunData
from reports.figures.figure import Picture

LINES = {"due": ("#0B3C6F", "-"), "sent": ("#56B4E9", "-"), "processing": ("#6b7480", (0, (4, 2)))}
"""Colour and dashes by starting point of the latency."""
MAX_PICTURES = 24
"""Of a run: those of the first cells, in the scenario's order."""
LABELS = {"due": "from due", "sent": "from sent", "processing": "processing alone"}


class Curve(Struct, frozen=True):
    """The latency percentiles of one trial at one rate (messages/s), by starting point."""

    rate: float
    title: str
    """the share of the confirmed rate, the rate, and the uncertainty of the clocks of several hosts"""
    percentiles: dict[str, list[Percentile]]


def collect_latency_curves(run_data: RunData, cell_data: CellData) -> list[Curve]:
    """Return the curves of a cell's latency trials, lowest rate first.

    They count all messages processed since the window began. The load stops with the window: messages that are
    processed later were due in it and have waited longest.
    """
    curves = []
    for trial in list_latency_trials(cell_data):
        measurement = trial.measurement
        buckets, begin = read_latencies(run_data.folder, cell_data.cell, measurement), int(measurement.planned.settle)
        of_kind = {kind: percentiles(histogram_of(buckets, kind, begin)) for kind in KINDS}
        curves.append(Curve(measurement.planned.rate, _describe_curve(cell_data, trial), of_kind))
    return sorted(curves, key=lambda curve: curve.rate)


def list_latency_trials(cell_data: CellData) -> list[JudgedTrial]:
    """Return the valid latency trials of a cell."""
    return [
        trial
        for trial in cell_data.trials
        if trial.measurement.planned.purpose == "latency" and trial.verdict.word != "invalid"
    ]


def _describe_curve(cell_data: CellData, trial: JudgedTrial) -> str:
    top = cell_data.result.confirmed_hz if cell_data.result is not None else None
    rate, clocks = trial.measurement.planned.rate, trial.measurement.clocks
    share = f"{rate / top:.0%}: " if top else ""
    uncertainty = f", clocks ± {format_duration(clocks.max_latency_error)}" if clocks is not None else ""
    overloaded = "\noverloaded" if trial.verdict.word == "overloaded" else ""
    return f"{share}{rate_text(rate)}{uncertainty}{overloaded}"


def make_latency_figures(run_data: RunData) -> list[Picture]:
    """Return a picture for each cell with latency trials, of at most MAX_PICTURES cells."""
    measured = [cell_data for cell_data in run_data.cells if list_latency_trials(cell_data)]
    return [
        _make_picture(cell_data, collect_latency_curves(run_data, cell_data)) for cell_data in measured[:MAX_PICTURES]
    ]


def _make_picture(cell_data: CellData, curves: Sequence[Curve]) -> Picture:
    """Return a picture with one panel for each rate."""
    title = f"{cell_data.cell.system}, {cell_data.point}"

    def draw(figure: Figure) -> None:
        figure.set_size_inches(2.6 * len(curves) + 0.8, 3.2)
        panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        figure.subplots_adjust(left=0.8 / figure.get_figwidth(), right=0.98, top=0.78, bottom=0.17, wspace=0.08)
        figure.text(0.02, 0.94, title, fontsize=10.5, fontweight="bold")
        for ax, curve in zip(panels, curves, strict=True):
            draw_percentiles(ax, curve)
        panels[0].set_ylabel("latency (s)")
        panels[0].legend(fontsize=7, frameon=False, loc="upper left")

    return Picture(f"latency-{cell_data.anchor.removeprefix('cell-')}", draw, f"Latency percentiles of {title}")


def draw_percentiles(ax: Axes, curve: Curve) -> Sequence[Artist]:
    """Draw latency over the share of messages, with 95 % intervals as bars; return the artists."""
    artists: list[Artist] = []
    for kind, (colour, dashes) in LINES.items():
        shown = [one for one in curve.percentiles[kind] if one.value > 0]
        if not shown:
            continue
        xs, values = _find_positions(shown), [one.value for one in shown]
        artists += ax.plot(xs, values, color=colour, linestyle=dashes, marker=".", markersize=4, label=LABELS[kind])
        artists.append(
            ax.vlines(xs, [one.low for one in shown], [one.high for one in shown], color=colour, linewidth=1)
        )
    longest = max(curve.percentiles.values(), key=len, default=[])
    ax.set_yscale("log")
    ax.set_xticks(_find_positions(longest), [_format_share(one.share) for one in longest], fontsize=7)
    ax.set_title(curve.title, fontsize=8.5)
    ax.set_xlabel("share of messages")
    return artists


def _find_positions(percentiles: Sequence[Percentile]) -> list[float]:
    """Return the x of each percentile: they are equally spaced."""
    return [float(n) for n in range(len(percentiles))]


def _format_share(share: float) -> str:
    return "max" if share == 1 else f"{100 * share:g} %"
