"""All figures of a run in reading order; the page, the PDF and the image files show the same ones."""

from msgspec import Struct

from reports.data.run_data import RunData
from reports.figures.bottleneck_map import make_bottleneck_maps
from reports.figures.critical_path import make_critical_path_figures
from reports.figures.figure import Picture
from reports.figures.heatmap_kinds import HEATMAP_KINDS, make_heatmaps
from reports.figures.latency import make_latency_figures
from reports.figures.rate_curves import make_rate_curves
from reports.figures.winner_map import make_winner_map


class Group(Struct, frozen=True):
    """Pictures of one kind: their name, their heading, and a text that explains them."""

    name: str
    title: str
    about: str
    pictures: tuple[Picture, ...]


BOTTLENECKS = (
    "What limits each cell, found from its trials: the overloaded one just above the sustained rate, and the CPU time "
    "of each role in it, or its critical path if it was traced. If nothing was at its limit, the cell says “not known”."
)
CURVES = (
    "The same rates over message size, one figure for each CPU cost. Bars are 95 % intervals; dotted bars are "
    "brackets, which are no confidence intervals. Systems stand a little beside each other, so that equal "
    "rates can be seen. Dashed lines are theoretical bounds: no system can be above them. ↑ means at least, ↓ at most, "
    "? that trials disagree; a gap means that there is no rate."
)
LATENCY = (
    "Latency at shares of the confirmed rate: from the time at which a message was due, from the time at which it was "
    "sent, and of its processing alone. A percentile is shown only if there are enough messages for it. Bars: 95 % "
    "intervals."
)

PATHS = (
    "What the critical path of each traced cell consists of, in the overloaded trial just above the sustained rate, or "
    "else in the fastest sustained one: left in each window, right in all of them, beside the conventional profile. "
    "Shortening an activity cannot save more than its share of the critical path; a busy activity that others do not "
    "wait for saves nothing. Critical participation after Hoffmann et al. (NSDI 2018)."
)


def make_map_groups(run_data: RunData) -> tuple[Group, ...]:
    """Return the groups of maps, one map a system; groups without a picture are left out."""
    groups = [
        Group(kind.name, _capitalize(kind.title), kind.about, tuple(make_heatmaps(run_data, kind)))
        for kind in HEATMAP_KINDS
    ]
    groups.append(Group("limits", "Bottlenecks", BOTTLENECKS, tuple(make_bottleneck_maps(run_data))))
    return tuple(group for group in groups if group.pictures)


def make_wide_groups(run_data: RunData) -> tuple[Group, ...]:
    """Return the groups whose pictures show several systems or one cell: throughput, latency, critical paths."""
    curves = Group("curves", "Throughput over message size", CURVES, tuple(make_rate_curves(run_data)))
    latency = Group("latency", "Latency below the maximum throughput", LATENCY, tuple(make_latency_figures(run_data)))
    paths = Group("paths", "Critical paths", PATHS, tuple(make_critical_path_figures(run_data)))
    return tuple(group for group in (curves, latency, paths) if group.pictures)


def make_figures(run_data: RunData) -> list[Picture]:
    """Return all figures of a run, the winner map first."""
    winners = make_winner_map(run_data)
    groups = (*make_map_groups(run_data), *make_wide_groups(run_data))
    return [*([winners] if winners is not None else []), *(picture for group in groups for picture in group.pictures)]


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
