"""The map of limits: for each cell of a system, what keeps it from being faster, as a colour and as a word."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from reports.data.bottleneck import Kind, limit_of
from reports.data.labels import claim_of, status_of
from reports.data.run_data import CellData, RunData
from reports.figures.figure import Picture
from reports.figures.heatmap import (
    HEIGHT,
    SMALL,
    WIDTH,
    Frame,
    Tile,
    draw_compact,
    draw_ground,
    draw_link,
    draw_statuses,
    grid_axes,
    is_compact,
)
from reports.figures.palette import EMPTY, FAILED, GREY, INK, RED, RGB, UNSUPPORTED, tint

COLOURS: dict[Kind, str] = {
    "the work": "#009E73", "framework CPU": "#0072B2", "broker CPU": "#CC79A7", "shared CPU": "#E69F00", "one thread": "#56B4E9",
    "batches": "#332288", "source": "#D55E00", "network": "#F0E442", "disk": "#44AA99", "garbage": "#999933",
    "generator": "#7a8591", "latency": "#882255", "died": "#a82a1f", "time": "#b9c1ca", "not known": "#e3e7eb",
}  # fmt: skip


def limit_pictures(run_data: RunData) -> list[Picture]:
    """The map of each system; none where the limit of no cell is told."""
    told = [known for known in run_data.cells if limit_of(run_data, known) is not None]
    return [_picture(run_data, system) for system in run_data.systems] if told else []


def _picture(run_data: RunData, system: str) -> Picture:
    compact = is_compact(run_data.sizes, run_data.costs)
    tiles = [_tile_of(run_data, known) for known in run_data.of_system(system)]

    def draw(figure: Figure) -> None:
        frame = Frame((SMALL, SMALL) if compact else (WIDTH, HEIGHT), right=0.2)
        ax, _ = grid_axes(figure, run_data.sizes, run_data.costs, frame)
        ax.set_title(f"{system}: what limits it")
        if compact:
            draw_compact(ax, tiles, _colour_of)
        else:
            draw_limits(ax, tiles)
        draw_statuses(ax, tiles)

    return Picture(f"limits-{system.replace('/', '-')}", draw, f"{system}: what limits it")


def _tile_of(run_data: RunData, known: CellData) -> Tile:
    limit = limit_of(run_data, known)
    place = run_data.sizes.index(known.cell.message_bytes), run_data.costs.index(known.cell.cpu_seconds)
    word = limit.kind if limit is not None else status_of(known)
    return Tile(
        *place, status_of(known), None, word, (claim_of(known.result),) if limit is not None else (), known.anchor
    )


def draw_limits(ax: Axes, tiles: Sequence[Tile]) -> list[Artist]:
    """Draw tiles into axes on which each cell is a unit square."""
    return [artist for tile in tiles for artist in (*draw_ground(ax, tile, _colour_of(tile)), *_draw_words(ax, tile))]


def _colour_of(tile: Tile) -> RGB:
    for kind, colour in COLOURS.items():
        if kind == tile.claim:
            return tint(colour)
    return to_rgb({"failed": FAILED, "unsupported": UNSUPPORTED}.get(tile.status, EMPTY))


def _draw_words(ax: Axes, tile: Tile) -> list[Artist]:
    ink = {"failed": RED, "unsupported": GREY}.get(tile.status, INK if tile.notes else GREY)
    env = {"facecolor": _colour_of(tile), "edgecolor": "none", "pad": 1.0} if tile.status != "measured" else None
    lines = [(tile.claim, 8.0, "bold" if tile.notes else "normal"), *((note, 6.8, "normal") for note in tile.notes)]
    top = tile.row + 0.5 + 0.11 * (len(lines) - 1)
    texts: list[Artist] = [
        ax.text(
            tile.column + 0.5, top - 0.24 * n, text,
            color=ink, fontsize=size, fontweight=weight, ha="center", va="center", bbox=env,
        )
        for n, (text, size, weight) in enumerate(lines)
    ]  # fmt: skip
    return [*texts, draw_link(ax, tile)]
