"""The timeline of one trial as a figure: messages offered, sent and processed over time, and the backlog below."""

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.data.labels import format_count
from reports.data.run_data import CellData, JudgedTrial
from reports.data.trial_timeline import TrialTimeline, describe_trial, make_trial_timeline
from reports.figures.figure import Picture

LINES = {"offered": ("#6b7480", (0, (4, 2))), "sent": ("#56B4E9", "-"), "processed": ("#0B3C6F", "-")}
"""Colour and dashes of each counter, in the order in which they are drawn."""
BACKLOG, SHADE = "#D55E00", "#f2f5f8"


def make_timeline(cell_data: CellData, trial: JudgedTrial) -> Picture:
    """Return the picture of one trial's timeline."""
    timeline = make_trial_timeline(trial)

    def draw(figure: Figure) -> None:
        figure.set_size_inches(4.9, 3.5)
        counts, backlog = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        figure.subplots_adjust(left=0.155, right=0.975, top=0.78, bottom=0.125, hspace=0.16)
        figure.text(0.02, 0.945, f"{cell_data.cell.system}, {cell_data.point}", fontsize=10.5, fontweight="bold")
        figure.text(0.02, 0.885, describe_trial(trial), fontsize=8.5)
        draw_counts(counts, timeline)
        draw_backlog(backlog, timeline)

    name = f"timeline-{cell_data.anchor.removeprefix('cell-')}-{trial.measurement.planned.number:03d}"
    return Picture(name, draw, f"{cell_data.cell.system}, {cell_data.point}, {describe_trial(trial)}")


def draw_counts(ax: Axes, timeline: TrialTimeline) -> list[Artist]:
    """Draw the three counters with a legend above; return the artists."""
    artists: list[Artist] = [*_draw_frame(ax, timeline)]
    for counter, (colour, dashes) in LINES.items():
        values = getattr(timeline, counter)
        artists += ax.plot(
            timeline.at, values, color=colour, linestyle=dashes, label=counter, zorder=3 if counter == "offered" else 2
        )
    artists.append(
        ax.legend(
            loc="lower left", bbox_to_anchor=(-0.01, 0.99), ncols=4, handlelength=1.6, columnspacing=1.2, borderpad=0.1
        )
    )
    ax.set_ylabel("messages")
    return artists


def draw_backlog(ax: Axes, timeline: TrialTimeline) -> list[Artist]:
    """Draw the backlog (offered - processed); return the artists."""
    artists: list[Artist] = [
        *_draw_frame(ax, timeline),
        ax.fill_between(timeline.at, timeline.backlog, color=BACKLOG, alpha=0.25, linewidth=0),
    ]
    artists += ax.plot(timeline.at, timeline.backlog, color=BACKLOG, linewidth=1.1)
    ax.set_ylabel("backlog\n(messages)")
    ax.set_xlabel("time since the first message was due (s)")
    return artists


def _draw_frame(ax: Axes, timeline: TrialTimeline) -> list[Artist]:
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda count, _: format_count(count)))
    ax.grid(visible=True, axis="y")
    ax.set_axisbelow(True)
    ax.margins(x=0.01)
    return [ax.axvspan(*timeline.window, color=SHADE, linewidth=0, zorder=0, label="window")]
