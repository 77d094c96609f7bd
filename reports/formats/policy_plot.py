"""Plot of scaling policies on one load: what was offered and what the workers could take, and the backlog below."""

from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bench.elasticity.live_samples import SOURCE
from bench.elasticity.policy_comparison import Following, PolicyComparison, PolicyRun
from bench.plugins.plugin import ReportPlugin
from reports.data.labels import format_count
from reports.data.policy_runs import ElasticSystem, compare_policies
from reports.figures.figure import Picture
from reports.figures.palette import BLUE, PAGE_GREY, SYSTEMS

WIDTH, MARGIN, HEIGHT = 2.5, 1.1, 4.3
"""Inches: of one policy, of the labels beside all, of the whole figure."""
BACKLOG = SYSTEMS[4]
UNITS = ((3 * 3600.0, 3600.0, "h"), (300.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From so many seconds of load on: seconds in a unit, and the unit."""


def write(comparison: PolicyComparison, file: Path) -> Path:
    """Write the plot; its kind is the file's ending, .png or .svg."""
    return make_policy_picture(comparison, f"Simulated policies on {comparison.following.system}").save(file)


def make_policy_picture(comparison: PolicyComparison, title: str, name: str = "policies") -> Picture:
    """Return a picture of all policies side by side."""
    return Picture(name, lambda figure: _draw(figure, comparison, title), title)


def draw_system(elastic: ElasticSystem, title: str, name: str = "policies") -> Picture | None:
    """Return a picture of the policies that scaled a running system; None if nothing was processed."""
    comparison = compare_policies(elastic)
    return None if comparison is None else make_policy_picture(comparison, title, name)


def _draw(figure: Figure, comparison: PolicyComparison, title: str) -> None:
    count = len(comparison.runs)
    figure.set_size_inches(MARGIN + WIDTH * count, HEIGHT)
    axes = figure.subplots(2, count, sharex=True, sharey="row", squeeze=False, height_ratios=(2, 1))
    for column, run in enumerate(comparison.runs):
        draw_capacity(axes[0][column], run, comparison.following)
        draw_backlog(axes[1][column], run, comparison.following)
        hours, changes = f"{run.score.instance_s / 3600:.3g} worker-hours", run.score.changes
        plural = "" if changes == 1 else "s"
        axes[0][column].set_title(f"{run.policy}\n{hours}, {changes} change{plural}", fontsize=9)
    most = max(run.score.most_instances for run in comparison.runs) * comparison.following.worker_hz
    axes[0][0].set_ylim(0, 1.35 * max(most, *comparison.following.load_hz))
    axes[0][0].set_ylabel("messages/s")
    axes[1][0].set_ylabel("backlog\n(messages)")
    axes[0][0].legend(loc="upper left")
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=10.5)
    figure.tight_layout()


def draw_capacity(ax: Axes, run: PolicyRun, following: Following) -> list[Artist]:
    """Draw the load, and the rate that the workers of each interval can take, as steps; return the artists."""
    edges, _ = _time_edges(run, following)
    offered = [decision.sample.offered[SOURCE] for decision in run.decisions]
    capacity = [decision.instances * following.worker_hz for decision in run.decisions]
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    return [
        ax.stairs(capacity, edges, color=BLUE, linewidth=1.5, label="workers can take"),
        ax.stairs(offered, edges, color=PAGE_GREY, linewidth=1.2, linestyle="--", label="offered"),
    ]


def draw_backlog(ax: Axes, run: PolicyRun, following: Following) -> list[Artist]:
    """Draw the messages that wait at the end of each interval; return the artists."""
    edges, unit = _time_edges(run, following)
    backlog = [sum(decision.sample.backlog.values()) for decision in run.decisions]
    ax.yaxis.set_major_locator(MaxNLocator(3))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    ax.set_xlabel(f"time ({unit})")
    return [ax.stairs(backlog, edges, color=BACKLOG, fill=True)]


def _time_edges(run: PolicyRun, following: Following) -> tuple[list[float], str]:
    """Return the ends of the intervals in a unit that suits them, and the unit."""
    total = len(following.load_hz) * following.interval
    _, unit_s, unit = next(each for each in UNITS if total >= each[0])
    return [number * following.interval / unit_s for number in range(len(run.decisions) + 1)], unit


plugin = ReportPlugin(draw_policies=write)
