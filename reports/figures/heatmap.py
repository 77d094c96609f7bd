"""Heatmaps of one system over message size and CPU cost: a coloured tile with text and a pattern for each cell."""

from collections.abc import Callable, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from msgspec import Struct

from bench.units import seconds_text, size_text
from reports.data.labels import MISSING, shorten
from reports.data.run_data import MeanSize
from reports.figures.figure import BOTTOM, LEFT, TOP
from reports.figures.palette import AMBER, DOTS, EMPTY, FAILED, GREY, INK, PALE, RED, RGB, UNSUPPORTED, is_dark
from reports.figures.scale import Scale

WIDTH, HEIGHT = 1.16, 0.64
"""Of one tile, in inches."""
COMPACT_SIDE = 0.15
"""Of one tile of a map without text, in inches."""
MAX_TILES_WITH_TEXT = 18
"""Columns or rows; with more, a map is drawn without text."""
MIN_WIDTH = 3.6
"""Of a map in inches, so that its title fits."""
HATCHES = {"lower-bound": "////", "upper-bound": "\\\\\\\\", "unsupported": "xxx"}
OUTLINES = {"unstable": (AMBER, "-"), "failed": (RED, "-"), "not-measured": (GREY, "--"), MISSING: (DOTS, ":")}


class Tile(Struct, frozen=True):
    """One cell of a map, prepared for drawing."""

    column: int
    row: int
    status: str
    value: float | None
    """sets its colour"""
    claim: str
    notes: tuple[str, ...]
    anchor: str


class MapLayout(Struct, frozen=True):
    """The size of a tile, and the margins around the tiles, in inches."""

    tile: tuple[float, float]
    right: float
    top: float = TOP
    bottom: float = BOTTOM


def is_compact(sizes: Sequence[int], costs: Sequence[float]) -> bool:
    """Return True if a map has too many tiles for text in them."""
    return max(len(sizes), len(costs)) > MAX_TILES_WITH_TEXT


def _format_size_label(size: int) -> str:
    return f"⌀ {size_text(size)}" if isinstance(size, MeanSize) else size_text(size)


def add_grid_axes(
    figure: Figure, sizes: Sequence[int], costs: Sequence[float], layout: MapLayout
) -> tuple[Axes, tuple[float, float]]:
    """Add axes over message size and CPU cost to a figure, and resize the figure to fit them.

    Args:
        figure: an empty figure.
        sizes: message sizes in bytes, one a column.
        costs: CPU costs in seconds per message, one a row.
        layout: size of a tile, and margins.

    Returns:
        The axes, in which each cell is a unit square, and their width and height in inches.
    """
    tile = layout.tile
    inches = (tile[0] * len(sizes), tile[1] * len(costs))
    width, height = LEFT + max(MIN_WIDTH, inches[0] + layout.right), layout.top + inches[1] + layout.bottom
    figure.set_size_inches(width, height)
    ax = figure.add_axes((LEFT / width, layout.bottom / height, inches[0] / width, inches[1] / height))
    ax.set_xlim(0, len(sizes))
    ax.set_ylim(0, len(costs))
    across, up = (max(1, round(least / step)) for least, step in zip((0.62, 0.2), tile, strict=True))
    ax.set_xticks(
        [n + 0.5 for n in range(0, len(sizes), across)], [_format_size_label(size) for size in sizes[::across]]
    )
    ax.set_yticks([n + 0.5 for n in range(0, len(costs), up)], [seconds_text(cost) for cost in costs[::up]])
    mixed = any(isinstance(size, MeanSize) for size in sizes)
    ax.set_xlabel("message size (⌀: mean of different sizes)" if mixed else "message size")
    ax.set_ylabel("CPU cost per message")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax, inches


def draw_heatmap(ax: Axes, tiles: Sequence[Tile], scale: Scale) -> list[Artist]:
    """Draw tiles, coloured by value, into axes in which each cell is a unit square; return the artists."""
    return [
        artist
        for tile in tiles
        for artist in (
            *draw_background(ax, tile, choose_colour(tile, scale)),
            *_draw_text(ax, tile, choose_colour(tile, scale)),
            draw_link(ax, tile),
        )
    ]


def draw_compact(ax: Axes, tiles: Sequence[Tile], choose_colour: Callable[[Tile], RGB]) -> list[Artist]:
    """Draw tiles without text and links as one mesh, with patterns for their statuses; return the artists."""
    columns, rows = (int(end) for end in (ax.get_xlim()[1], ax.get_ylim()[1]))
    colours: list[list[RGB]] = [[to_rgb(EMPTY)] * columns for _ in range(rows)]
    for tile in tiles:
        colours[tile.row][tile.column] = choose_colour(tile)
    mesh: QuadMesh = ax.pcolormesh(range(columns + 1), range(rows + 1), colours, shading="flat")
    marked = (tile for tile in tiles if tile.status not in ("measured", MISSING))
    return [mesh, *(artist for tile in marked for artist in draw_background(ax, tile, choose_colour(tile)))]


def choose_colour(tile: Tile, scale: Scale) -> RGB:
    """Return the background colour of a tile."""
    if tile.value is not None and tile.value > 0:
        return scale.colour(tile.value)
    return to_rgb({"failed": FAILED, "unsupported": UNSUPPORTED}.get(tile.status, EMPTY))


def draw_background(ax: Axes, tile: Tile, colour: RGB) -> list[Artist]:
    """Draw a tile's background with the pattern or outline of its status; return the artists."""
    corner = (tile.column + 0.015, tile.row + 0.025)
    background = Rectangle(corner, 0.97, 0.95, facecolor=colour)
    if hatch := HATCHES.get(tile.status):
        background.set(hatch=hatch, edgecolor=_choose_hatch_colour(tile.status, colour), linewidth=0)
    artists: list[Artist] = [ax.add_patch(background)]
    if tile.status == MISSING:
        artists.append(_draw_dots(ax, tile))
    if outline := OUTLINES.get(tile.status):
        inside = Rectangle((corner[0] + 0.012, corner[1] + 0.022), 0.946, 0.906, fill=False)
        inside.set(
            edgecolor=outline[0],
            linestyle=outline[1],
            linewidth=1.0 if tile.status in (MISSING, "not-measured") else 2.0,
            zorder=2,
        )
        artists.append(ax.add_patch(inside))
    return artists


def _draw_dots(ax: Axes, tile: Tile) -> Artist:
    """Draw rows of dots as lines with round, empty dashes: a hatch of dots would make an SVG of 80 kB."""
    heights = [tile.row + (n + 0.5) / 6 for n in range(6)]
    dots = ax.hlines(
        heights, tile.column + 0.06, tile.column + 0.95, colors=DOTS, linewidth=1.3, linestyles=(0, (0.01, 6))
    )
    dots.set_capstyle("round")
    return dots


def _choose_hatch_colour(status: str, background: RGB) -> str:
    if status == "unsupported":
        return "#c8ced6"
    return "#ffffff66" if is_dark(background) else "#02060a38"


def _draw_text(ax: Axes, tile: Tile, background: RGB) -> list[Artist]:
    ink = {"failed": RED, "unsupported": GREY, "not-measured": GREY, MISSING: GREY}.get(
        tile.status, PALE if is_dark(background) else INK
    )
    plain = tile.value is None
    bold = tile.status == "failed" or not plain
    lines = [(tile.claim, 8.5 if plain else 10.5, "bold" if bold else "normal")]
    lines += [(shorten(note, 19), 6.8, "normal") for note in tile.notes]
    pitch = 0.22
    top = tile.row + 0.5 + pitch * (len(lines) - 1) / 2
    halo = {"facecolor": background, "edgecolor": "none", "pad": 1.2} if tile.status in (*HATCHES, MISSING) else None
    return [
        ax.text(
            tile.column + 0.5, top - pitch * n, text,
            color=ink, fontsize=size, fontweight=weight, ha="center", va="center", bbox=halo,
        )
        for n, (text, size, weight) in enumerate(lines)
    ]  # fmt: skip


def draw_link(ax: Axes, tile: Tile) -> Artist:
    """Draw a transparent link over a tile, so that its text can be clicked as well; return the artist."""
    return ax.add_patch(
        Rectangle((tile.column, tile.row), 1, 1, facecolor=PALE, alpha=0.0, zorder=9, url=f"#{tile.anchor}")
    )


def draw_statuses(ax: Axes, tiles: Sequence[Tile]) -> list[Artist]:
    """Draw a legend of the patterns that occur in a map, below it; return the artists."""
    statuses = [status for status in (*HATCHES, *OUTLINES) if any(tile.status == status for tile in tiles)]
    if not statuses:
        return []
    patches = [_make_sample(status) for status in statuses]
    legend = ax.legend(
        handles=patches, ncols=len(statuses), loc="upper left", bbox_to_anchor=(-0.008, 0.0), fontsize=7,
        borderaxespad=4.1, handlelength=1.7, columnspacing=1.0, handletextpad=0.5,
    )  # fmt: skip
    return [legend]


def _make_sample(status: str) -> Patch:
    sample = Patch(facecolor="#dfe6ea", label={"lower-bound": "at least", "upper-bound": "at most"}.get(status, status))
    if hatch := HATCHES.get(status):
        sample.set(hatch=hatch, edgecolor="#7a8591", linewidth=0)
    if outline := OUTLINES.get(status):
        sample.set(
            facecolor=FAILED if status == "failed" else EMPTY, edgecolor=outline[0], linestyle=outline[1], linewidth=1.4
        )
    return sample
