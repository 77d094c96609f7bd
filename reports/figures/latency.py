"""Percentile curves: how long messages take, at shares of the highest rate, from three starting points."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from msgspec import Struct

from bench.analysis.histogram import KINDS, Percentile, histogram_of, percentiles
from bench.storage.series_files import read_latencies
from bench.units import rate_text
from reports.data.run_data import CellData, JudgedTrial, RunData
from reports.figures.figure import Picture
from reports.formats.csv_table import time_text

LINES = {"due": ("#0B3C6F", "-"), "sent": ("#56B4E9", "-"), "processing": ("#6b7480", (0, (4, 2)))}
"""Colour and dashes by where the latency begins."""
MOST = 24
"""Pictures of a run: the first cells, in the scenario's order."""
WORDS = {"due": "from due", "sent": "from sent", "processing": "processing alone"}


class Curve(Struct, frozen=True):
    """The percentiles of one trial at one rate, by where they begin."""

    rate: float
    title: str
    """the share of the highest confirmed rate, the rate, and how far the clocks of several hosts may differ"""
    percentiles: dict[str, list[Percentile]]


def curves_of(run_data: RunData, known: CellData) -> list[Curve]:
    """The latency trials of a cell that say something of the system, the slowest first; all processed since their windows began.

    The load stops with the window: what is processed later was due in it, and has waited longest.
    """
    found = []
    for one in latency_trials(known):
        seen = one.seen
        buckets, begin = read_latencies(run_data.folder, known.cell, seen), int(seen.planned.settle)
        of_kind = {kind: percentiles(histogram_of(buckets, kind, begin)) for kind in KINDS}
        found.append(Curve(seen.planned.rate, _title_of(known, one), of_kind))
    return sorted(found, key=lambda curve: curve.rate)


def latency_trials(known: CellData) -> list[JudgedTrial]:
    """Those whose load was as it was asked for."""
    return [one for one in known.trials if one.seen.planned.purpose == "latency" and one.verdict.word != "invalid"]


def _title_of(known: CellData, one: JudgedTrial) -> str:
    seen, top = one.seen, known.result.confirmed_hz if known.result is not None else None
    share = f"{seen.planned.rate / top:.0%}: " if top else ""
    doubt = f", clocks ± {time_text(seen.clocks.max_latency_error)}" if seen.clocks is not None else ""
    over = "\noverloaded" if one.verdict.word == "overloaded" else ""
    return f"{share}{rate_text(seen.planned.rate)}{doubt}{over}"


def latency_pictures(run_data: RunData) -> list[Picture]:
    """A picture for each cell that has latency trials, of at most MOST cells."""
    measured = [known for known in run_data.cells if latency_trials(known)]
    return [_picture(known, curves_of(run_data, known)) for known in measured[:MOST]]


def _picture(known: CellData, curves: Sequence[Curve]) -> Picture:
    """One panel for each rate."""
    title = f"{known.cell.system}, {known.point}"

    def draw(figure: Figure) -> None:
        figure.set_size_inches(2.6 * len(curves) + 0.8, 3.2)
        panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        figure.subplots_adjust(left=0.8 / figure.get_figwidth(), right=0.98, top=0.78, bottom=0.17, wspace=0.08)
        figure.text(0.02, 0.94, title, fontsize=10.5, fontweight="bold")
        for axes, curve in zip(panels, curves, strict=True):
            draw_percentiles(axes, curve)
        panels[0].set_ylabel("latency (s)")
        panels[0].legend(fontsize=7, frameon=False, loc="upper left")

    return Picture(f"latency-{known.anchor.removeprefix('cell-')}", draw, f"Latency percentiles of {title}")


def draw_percentiles(axes: Axes, curve: Curve) -> Sequence[Artist]:
    """Latency over the share of messages, each nine further right; bars are 95 % intervals; the maximum stands at the end."""
    artists: list[Artist] = []
    for kind, (colour, dashes) in LINES.items():
        known = [one for one in curve.percentiles[kind] if one.value > 0]
        if not known:
            continue
        places = [_nines(one.share, known) for one in known]
        artists += axes.plot(
            places,
            [one.value for one in known],
            color=colour,
            linestyle=dashes,
            marker=".",
            markersize=4,
            label=WORDS[kind],
        )
        artists.append(
            axes.vlines(places, [one.low for one in known], [one.high for one in known], color=colour, linewidth=1)
        )
    longest = max(curve.percentiles.values(), key=len, default=[])
    axes.set_yscale("log")
    axes.set_xticks([_nines(one.share, longest) for one in longest])
    axes.set_xticklabels([_label(one.share) for one in longest], fontsize=7)
    axes.set_title(curve.title, fontsize=8.5)
    axes.set_xlabel("share of messages")
    return artists


def _nines(share: float, known: Sequence[Percentile]) -> float:
    """Where a share stands: by its place among those that are shown."""
    return float([one.share for one in known].index(share))


def _label(share: float) -> str:
    return "max" if share == 1 else f"{100 * share:g} %"
