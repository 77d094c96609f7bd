"""The timeline of one trial: what was offered, sent and processed over time, and the backlog below."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from msgspec import Struct

from bench.units import rate_text
from reports.data.run_data import CellData, JudgedTrial
from reports.figures.figure import Picture

MAX_POINTS = 200
LINES = {"offered": ("#6b7480", (0, (4, 2))), "sent": ("#56B4E9", "-"), "processed": ("#0B3C6F", "-")}
"""Colour and dashes of each counter, in the order in which they are drawn."""
BACKLOG, SHADE = "#D55E00", "#f2f5f8"


class Trace(Struct, frozen=True):
    """The counters of one trial, thinned for drawing: seconds since the first message was due, and messages since then."""

    at: tuple[float, ...]
    offered: tuple[int, ...]
    sent: tuple[int, ...]
    processed: tuple[int, ...]
    backlog: tuple[int, ...]
    window: tuple[float, float]


def trace_of(judged: JudgedTrial, most: int = MAX_POINTS) -> Trace:
    """A trial's counters at no more than `most` instants; the peaks and troughs of its backlog are among them."""
    seen = judged.seen
    series, begin = seen.series, seen.planned.settle
    backlog = [max(0, offered - processed) for offered, processed in zip(series.offered, series.processed, strict=True)]
    cached_resource = _extremes(backlog, most)
    columns = (series.offered, series.sent, series.processed, backlog)
    offered, sent, processed, left = (tuple(column[n] for n in cached_resource) for column in columns)
    return Trace(
        tuple(series.at[n] for n in cached_resource),
        offered,
        sent,
        processed,
        left,
        (begin, begin + seen.planned.window),
    )


def _extremes(values: Sequence[int], most: int) -> list[int]:
    """Indices of the first, the last, and of the least and greatest value of each of (most - 2) / 2 equal parts."""
    if len(values) <= most:
        return list(range(len(values)))
    parts = max(1, (most - 2) // 2)
    cached_resource = {0, len(values) - 1}
    for part in range(parts):
        span = range(part * len(values) // parts, (part + 1) * len(values) // parts)
        cached_resource |= {min(span, key=values.__getitem__), max(span, key=values.__getitem__)}
    return sorted(cached_resource)


def title_of(judged: JudgedTrial) -> str:
    """A trial in a line: its number, its rate and its verdict."""
    planned, verdict = judged.seen.planned, judged.verdict
    why = f" ({verdict.why})" if verdict.why else ""
    return f"trial {planned.number} at {rate_text(planned.rate)}: {verdict.word}{why}"


def timeline_of(known: CellData, judged: JudgedTrial) -> Picture:
    """The picture of one trial's timeline."""
    trace = trace_of(judged)

    def draw(figure: Figure) -> None:
        figure.set_size_inches(4.9, 3.5)
        counts, backlog = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        figure.subplots_adjust(left=0.155, right=0.975, top=0.78, bottom=0.125, hspace=0.16)
        figure.text(0.02, 0.945, f"{known.cell.system}, {known.point}", fontsize=10.5, fontweight="bold")
        figure.text(0.02, 0.885, title_of(judged), fontsize=8.5)
        draw_counts(counts, trace)
        draw_backlog(backlog, trace)

    name = f"timeline-{known.anchor.removeprefix('cell-')}-{judged.seen.planned.number:03d}"
    return Picture(name, draw, f"{known.cell.system}, {known.point}, {title_of(judged)}")


def draw_counts(ax: Axes, trace: Trace) -> list[Artist]:
    """Draw the three counters; each line is named at its end."""
    artists: list[Artist] = [*_draw_frame(ax, trace)]
    for counter, (colour, dashes) in LINES.items():
        values = getattr(trace, counter)
        artists += ax.plot(
            trace.at, values, color=colour, linestyle=dashes, label=counter, zorder=3 if counter == "offered" else 2
        )
    artists.append(
        ax.legend(
            loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=4, handlelength=1.6, columnspacing=1.2, borderpad=0.1
        )
    )
    ax.set_ylabel("messages")
    return artists


def draw_backlog(ax: Axes, trace: Trace) -> list[Artist]:
    """Draw offered - processed."""
    artists: list[Artist] = [
        *_draw_frame(ax, trace),
        ax.fill_between(trace.at, trace.backlog, color=BACKLOG, alpha=0.25, linewidth=0),
    ]
    artists += ax.plot(trace.at, trace.backlog, color=BACKLOG, linewidth=1.1)
    ax.set_ylabel("backlog\n(messages)")
    ax.set_xlabel("time since the first message was due (s)")
    return artists


def _draw_frame(ax: Axes, trace: Trace) -> list[Artist]:
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda count, _: count_text(count)))
    ax.grid(visible=True, axis="y")
    ax.set_axisbelow(True)
    ax.margins(x=0.01)
    return [ax.axvspan(*trace.window, color=SHADE, linewidth=0, zorder=0, label="window")]


def count_text(count: float) -> str:
    """A number of messages as people read it: 950, 12.3 k, 4.5 M."""
    return rate_text(count).removesuffix("/s").strip()
