"""The map of bottlenecks: what limits each cell of a system, as a colour and as text."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from reports.data.bottleneck import Kind, find_bottleneck
from reports.data.labels import format_claim, status_of
from reports.data.run_data import CellData, RunData
from reports.figures.figure import Picture
from reports.figures.heatmap import (
    COMPACT_SIDE,
    HEIGHT,
    WIDTH,
    MapLayout,
    Tile,
    add_grid_axes,
    draw_background,
    draw_compact,
    draw_link,
    draw_statuses,
    is_compact,
)
from reports.figures.palette import EMPTY, FAILED, GREY, INK, RED, RGB, UNSUPPORTED, tint

COLOURS: dict[Kind, str] = {
    "CPU cost": "#009E73", "framework CPU": "#0072B2", "broker CPU": "#CC79A7", "shared CPU": "#E69F00",
    "one thread": "#56B4E9", "batches": "#332288", "commits": "#88CCEE", "straggler": "#AA4466",
    "source": "#D55E00", "network": "#F0E442", "disk": "#44AA99", "garbage collection": "#999933",
    "generator": "#7a8591", "latency": "#882255", "died": "#a82a1f", "time allowed": "#b9c1ca",
    "not known": "#e3e7eb",
}  # fmt: skip


def make_bottleneck_maps(run_data: RunData) -> list[Picture]:
    """Return the map of each system; none if no cell has a bottleneck to show."""
    if all(find_bottleneck(run_data, cell_data) is None for cell_data in run_data.cells):
        return []
    return [_make_picture(run_data, system) for system in run_data.systems]


def _make_picture(run_data: RunData, system: str) -> Picture:
    compact, title = is_compact(run_data.sizes, run_data.costs), f"{system}: bottlenecks"
    tiles = [_make_tile(run_data, cell_data) for cell_data in run_data.of_system(system)]

    def draw(figure: Figure) -> None:
        layout = MapLayout((COMPACT_SIDE, COMPACT_SIDE) if compact else (WIDTH, HEIGHT), right=0.2)
        ax, _ = add_grid_axes(figure, run_data.sizes, run_data.costs, layout)
        ax.set_title(title)
        if compact:
            draw_compact(ax, tiles, _choose_colour)
        else:
            draw_bottlenecks(ax, tiles)
        draw_statuses(ax, tiles)

    return Picture(f"limits-{system.replace('/', '-')}", draw, title)


def _make_tile(run_data: RunData, cell_data: CellData) -> Tile:
    bottleneck, status = find_bottleneck(run_data, cell_data), status_of(cell_data)
    column = run_data.sizes.index(cell_data.cell.message_bytes)
    row = run_data.costs.index(cell_data.cell.cpu_seconds)
    if bottleneck is None:
        return Tile(column, row, status, None, status, (), cell_data.anchor)
    return Tile(column, row, status, None, bottleneck.kind, (format_claim(cell_data.result),), cell_data.anchor)


def draw_bottlenecks(ax: Axes, tiles: Sequence[Tile]) -> list[Artist]:
    """Draw tiles into axes in which each cell is a unit square; return the artists."""
    return [
        artist for tile in tiles for artist in (*draw_background(ax, tile, _choose_colour(tile)), *_draw_text(ax, tile))
    ]


def _choose_colour(tile: Tile) -> RGB:
    for kind, colour in COLOURS.items():
        if kind == tile.claim:
            return tint(colour)
    return to_rgb({"failed": FAILED, "unsupported": UNSUPPORTED}.get(tile.status, EMPTY))


def _draw_text(ax: Axes, tile: Tile) -> list[Artist]:
    ink = {"failed": RED, "unsupported": GREY, "not-measured": GREY}.get(tile.status, INK if tile.notes else GREY)
    halo = {"facecolor": _choose_colour(tile), "edgecolor": "none", "pad": 1.0} if tile.status != "measured" else None
    lines = [(tile.claim, 7.6, "bold" if tile.notes else "normal"), *((note, 6.8, "normal") for note in tile.notes)]
    top = tile.row + 0.5 + 0.11 * (len(lines) - 1)
    texts: list[Artist] = [
        ax.text(
            tile.column + 0.5, top - 0.24 * n, text,
            color=ink, fontsize=size, fontweight=weight, ha="center", va="center", bbox=halo,
        )
        for n, (text, size, weight) in enumerate(lines)
    ]  # fmt: skip
    return [*texts, draw_link(ax, tile)]
