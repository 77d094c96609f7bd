"""Every figure of a run in the order in which people look at them; page, PDF and files show the same ones."""

from msgspec import Struct

from reports.data.heatmap_kinds import LAYERS, layer_pictures
from reports.data.run_data import RunData
from reports.figures.bottleneck_map import limit_pictures
from reports.figures.figure import Picture
from reports.figures.latency import latency_pictures
from reports.figures.rate_curves import curve_pictures
from reports.figures.winner_map import winners_of


class Group(Struct, frozen=True):
    """Pictures that belong together: their name, their heading, and what they show."""

    name: str
    title: str
    about: str
    pictures: tuple[Picture, ...]


LIMITS = (
    "Why the cell is not faster, told from its trials: the overloaded one just above the top rate, and the CPU time that each part "
    "used in it. Where no probe was at its limit it says so."
)
CURVES = (
    "The same rates over message size, a figure for each CPU cost, with the interval of each. Dashed lines are bounds of theory: "
    "no system can be above them. An arrow says at least (↑) or at most (↓), a ? that trials disagree, a gap that there is no rate."
)
LATENCY = (
    "At shares of the highest confirmed rate: how long messages take from the moment at which they were due, from when they were "
    "sent, and while they are processed. A percentile is shown only where there are enough messages for it. Bars: 95 % intervals."
)


def groups_of(run_data: RunData) -> tuple[Group, ...]:
    """The groups that this run has something to show for."""
    found = [
        Group(layer.name, _capital(layer.title), layer.about, tuple(layer_pictures(run_data, layer)))
        for layer in LAYERS
    ]
    found.append(Group("limits", "What limits it", LIMITS, tuple(limit_pictures(run_data))))
    return tuple(group for group in found if group.pictures)


def wide_groups_of(run_data: RunData) -> tuple[Group, ...]:
    """The groups whose pictures are not one a system: frequency over size, and latency below the limit."""
    curves = Group("curves", "Frequency over message size", CURVES, tuple(curve_pictures(run_data)))
    latency = Group("latency", "Latency below the limit", LATENCY, tuple(latency_pictures(run_data)))
    return tuple(group for group in (curves, latency) if group.pictures)


def winners_of_run(run_data: RunData) -> Picture | None:
    """The winner map, where there is something to win."""
    return winners_of(run_data) if len(run_data.systems) > 1 else None


def figures_of(run_data: RunData) -> list[Picture]:
    """All of them, the winner map first."""
    winners = winners_of_run(run_data)
    groups = (*groups_of(run_data), *wide_groups_of(run_data))
    return [*([winners] if winners is not None else []), *(picture for group in groups for picture in group.pictures)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
