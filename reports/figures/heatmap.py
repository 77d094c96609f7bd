"""One system over message size and CPU cost: a coloured field for each cell, its words, and a pattern for its status."""

from collections.abc import Callable, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from msgspec import Struct

from bench.units import seconds_text, size_text
from reports.data.labels import MISSING, shortened
from reports.data.run_data import MeanSize
from reports.figures.figure import BOTTOM, LEFT, TOP
from reports.figures.palette import AMBER, DOTS, EMPTY, FAILED, GREY, INK, PALE, RED, RGB, UNSUPPORTED, is_dark
from reports.figures.scale import Scale

WIDTH, HEIGHT = 1.16, 0.64
"""Of one cell, in inches."""
SMALL = 0.15
"""Of one cell of a map that has too many for words."""
MAX_WITH_WORDS = 18
"""Columns or rows; with more, a map is drawn without words."""
NARROWEST = 3.6
"""Inches for a title, however few the cells below it."""
HATCHES = {"lower-bound": "////", "upper-bound": "\\\\\\\\", "unsupported": "xxx"}
OUTLINES = {"unstable": (AMBER, "-"), "failed": (RED, "-"), MISSING: (DOTS, ":")}


class Tile(Struct, frozen=True):
    """One cell of a map, ready to be drawn."""

    column: int
    row: int
    status: str
    value: float | None
    """that gives it its colour"""
    claim: str
    notes: tuple[str, ...]
    anchor: str


class Frame(Struct, frozen=True):
    """The size of a tile, and the margins around all of them, in inches."""

    tile: tuple[float, float]
    right: float
    top: float = TOP
    bottom: float = BOTTOM


def is_compact(sizes: Sequence[int], costs: Sequence[float]) -> bool:
    """Whether a map has too many cells for words in them."""
    return max(len(sizes), len(costs)) > MAX_WITH_WORDS


def _size_label(size: int) -> str:
    return f"⌀ {size_text(size)}" if isinstance(size, MeanSize) else size_text(size)


def grid_axes(
    figure: Figure, sizes: Sequence[int], costs: Sequence[float], frame: Frame
) -> tuple[Axes, tuple[float, float]]:
    """Axes over message size and CPU cost in a figure that is made to fit them; with their width and height in inches."""
    tile = frame.tile
    inches = (tile[0] * len(sizes), tile[1] * len(costs))
    width, height = LEFT + max(NARROWEST, inches[0] + frame.right), frame.top + inches[1] + frame.bottom
    figure.set_size_inches(width, height)
    ax = figure.add_axes((LEFT / width, frame.bottom / height, inches[0] / width, inches[1] / height))
    ax.set_xlim(0, len(sizes))
    ax.set_ylim(0, len(costs))
    across, up = (max(1, round(least / step)) for least, step in zip((0.62, 0.2), tile, strict=True))
    ax.set_xticks([n + 0.5 for n in range(0, len(sizes), across)], [_size_label(size) for size in sizes[::across]])
    ax.set_yticks([n + 0.5 for n in range(0, len(costs), up)], [seconds_text(cost) for cost in costs[::up]])
    mixed = any(isinstance(size, MeanSize) for size in sizes)
    ax.set_xlabel("message size (⌀: the mean of sizes that differ)" if mixed else "message size")
    ax.set_ylabel("CPU cost per message")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax, inches


def draw_heatmap(ax: Axes, tiles: Sequence[Tile], scale: Scale) -> list[Artist]:
    """Draw tiles into axes on which each cell is a unit square; the colour says the value, the pattern says the status."""
    return [
        artist
        for tile in tiles
        for artist in (
            *draw_ground(ax, tile, colour_of(tile, scale)),
            *_draw_words(ax, tile, colour_of(tile, scale)),
            draw_link(ax, tile),
        )
    ]


def draw_compact(ax: Axes, tiles: Sequence[Tile], colour_of: Callable[[Tile], RGB]) -> list[Artist]:
    """The same without words and links: one mesh for the colours, a pattern on each cell that is not simply measured."""
    columns, rows = (int(end) for end in (ax.get_xlim()[1], ax.get_ylim()[1]))
    colours: list[list[RGB]] = [[to_rgb(EMPTY)] * columns for _ in range(rows)]
    for tile in tiles:
        colours[tile.row][tile.column] = colour_of(tile)
    mesh: QuadMesh = ax.pcolormesh(range(columns + 1), range(rows + 1), colours, shading="flat")
    marked = (tile for tile in tiles if tile.status not in ("measured", MISSING))
    return [mesh, *(artist for tile in marked for artist in draw_ground(ax, tile, colour_of(tile)))]


def colour_of(tile: Tile, scale: Scale) -> RGB:
    """The colour of a tile's ground."""
    if tile.value is not None and tile.value > 0:
        return scale.colour(tile.value)
    return to_rgb({"failed": FAILED, "unsupported": UNSUPPORTED}.get(tile.status, EMPTY))


def draw_ground(ax: Axes, tile: Tile, colour: RGB) -> list[Artist]:
    """A tile's field: hatched for a bound, crossed where unsupported, outlined where unstable, failed or missing."""
    place = (tile.column + 0.015, tile.row + 0.025)
    env = Rectangle(place, 0.97, 0.95, facecolor=colour)
    if hatch := HATCHES.get(tile.status):
        env.set(hatch=hatch, edgecolor=_hatch_colour(tile.status, colour), linewidth=0)
    artists: list[Artist] = [ax.add_patch(env)]
    if tile.status == MISSING:
        artists.append(_draw_dots(ax, tile))
    if outline := OUTLINES.get(tile.status):
        inside = Rectangle((place[0] + 0.012, place[1] + 0.022), 0.946, 0.906, fill=False)
        inside.set(
            edgecolor=outline[0], linestyle=outline[1], linewidth=1.0 if tile.status == MISSING else 2.0, zorder=2
        )
        artists.append(ax.add_patch(inside))
    return artists


def _draw_dots(ax: Axes, tile: Tile) -> Artist:
    """Rows of dots; as lines with round, empty dashes, since a hatch of dots makes an SVG of 80 kB."""
    heights = [tile.row + (n + 0.5) / 6 for n in range(6)]
    dots = ax.hlines(
        heights, tile.column + 0.06, tile.column + 0.95, colors=DOTS, linewidth=1.3, linestyles=(0, (0.01, 6))
    )
    dots.set_capstyle("round")
    return dots


def _hatch_colour(status: str, env: RGB) -> str:
    if status == "unsupported":
        return "#c8ced6"
    return "#ffffff66" if is_dark(env) else "#02060a38"


def _draw_words(ax: Axes, tile: Tile, env: RGB) -> list[Artist]:
    ink = {"failed": RED, "unsupported": GREY, MISSING: GREY}.get(tile.status, PALE if is_dark(env) else INK)
    plain = tile.value is None
    bold = tile.status == "failed" or not plain
    lines = [(tile.claim, 8.5 if plain else 10.5, "bold" if bold else "normal")]
    lines += [(shortened(note, 19), 6.8, "normal") for note in tile.notes]
    pitch = 0.22
    top = tile.row + 0.5 + pitch * (len(lines) - 1) / 2
    halo = {"facecolor": env, "edgecolor": "none", "pad": 1.2} if tile.status in (*HATCHES, MISSING) else None
    return [
        ax.text(
            tile.column + 0.5, top - pitch * n, text,
            color=ink, fontsize=size, fontweight=weight, ha="center", va="center", bbox=halo,
        )
        for n, (text, size, weight) in enumerate(lines)
    ]  # fmt: skip


def draw_link(ax: Axes, tile: Tile) -> Artist:
    """A sheet of glass over a tile that leads to its cell, so that its words can be clicked as well."""
    return ax.add_patch(
        Rectangle((tile.column, tile.row), 1, 1, facecolor=PALE, alpha=0.0, zorder=9, url=f"#{tile.anchor}")
    )


def draw_statuses(ax: Axes, tiles: Sequence[Tile]) -> list[Artist]:
    """What the patterns of a map say, below it; only those that occur in it."""
    found = [status for status in (*HATCHES, *OUTLINES) if any(tile.status == status for tile in tiles)]
    if not found:
        return []
    patches = [_sample_of(status) for status in found]
    legend = ax.legend(
        handles=patches, ncols=len(found), loc="upper left", bbox_to_anchor=(-0.008, 0.0), fontsize=7,
        borderaxespad=4.1, handlelength=1.7, columnspacing=1.0, handletextpad=0.5,
    )  # fmt: skip
    return [legend]


def _sample_of(status: str) -> Patch:
    sample = Patch(facecolor="#dfe6ea", label={"lower-bound": "at least", "upper-bound": "at most"}.get(status, status))
    if hatch := HATCHES.get(status):
        sample.set(hatch=hatch, edgecolor="#7a8591", linewidth=0)
    if outline := OUTLINES.get(status):
        sample.set(
            facecolor=FAILED if status == "failed" else EMPTY, edgecolor=outline[0], linestyle=outline[1], linewidth=1.4
        )
    return sample
