"""The winner map: the rates of all systems at each point of the grid, in the colour of the best system."""

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch, Rectangle
from msgspec import Struct

from reports.data.labels import MISSING, WITHOUT_RATE, format_claim, format_error, status_of
from reports.data.run_data import RunData
from reports.data.winners import Ranking, describe_decision, rank_all_points
from reports.figures.figure import RIGHT, TOP, Picture
from reports.figures.heatmap import COMPACT_SIDE, MIN_WIDTH, MapLayout, add_grid_axes, is_compact
from reports.figures.palette import EMPTY, INK, PALE, RGB, UNSUPPORTED, assign_colours, tint

TITLE = "Maximum throughput (messages/s)"
COMPACT_TITLE = "Best system at each point"
ERROR_SHARE = 0.23
"""Of a tile's width for the errors of its rates."""
LINE_HEIGHT = 0.19
"""Of a line of text in a tile, in inches."""
REMARK_LINES = 2.9
"""Of the decision and its reason below the systems of a tile, in lines."""
BACKGROUND = "#f1f3f5"
"""Of a tile without a certain winner."""


class Row(Struct, frozen=True):
    """The line of one system in a tile."""

    system: str
    claim: str
    error: str
    """the interval as a distance from the estimate"""
    leads: bool
    has_rate: bool


class WinnerTile(Struct, frozen=True):
    """One point of the grid, prepared for drawing."""

    column: int
    row: int
    leaders: tuple[str, ...]
    won: bool
    rows: tuple[Row, ...]
    remarks: tuple[str, str]
    """the decision, and the reason of an open point"""
    anchors: tuple[str, ...]
    """of each row's cell"""


def make_winner_tiles(run_data: RunData) -> list[WinnerTile]:
    """Return the tiles of the winner map, one a point of the grid."""
    return [_make_tile(ranking, run_data) for ranking in rank_all_points(run_data)]


def _make_tile(ranking: Ranking, run_data: RunData) -> WinnerTile:
    rows = tuple(
        Row(
            cell_data.cell.system,
            format_claim(cell_data.result),
            format_error(cell_data.result),
            cell_data.cell.system in ranking.leaders,
            status_of(cell_data) not in (MISSING, *WITHOUT_RATE),
        )
        for cell_data in ranking.cells
    )
    anchors = tuple(cell_data.anchor for cell_data in ranking.cells)
    at = run_data.sizes.index(ranking.size), run_data.costs.index(ranking.cost)
    remarks = (describe_decision(ranking.decision), ranking.decision.why)
    return WinnerTile(*at, ranking.leaders, ranking.outcome == "clear", rows, remarks, anchors)


def make_winner_map(run_data: RunData) -> Picture | None:
    """Return the winner map with its legend; None for a single system."""
    if len(run_data.systems) < 2:
        return None
    tiles, colours = make_winner_tiles(run_data), assign_colours(run_data.systems)
    compact = is_compact(run_data.sizes, run_data.costs)
    longest = max(len(system) for system in run_data.systems)
    width = max(0.27 + 0.07 * (longest + 22), 0.1 + 0.048 * max(len(text) for tile in tiles for text in tile.remarks))
    height = LINE_HEIGHT * (len(run_data.systems) + REMARK_LINES)
    columns = max(1, int(max(MIN_WIDTH, width * len(run_data.sizes)) / (0.5 + 0.072 * longest)))
    above = 0.2 * -(-len(run_data.systems) // columns) + 0.05

    def draw(figure: Figure) -> None:
        layout = MapLayout(
            (COMPACT_SIDE, COMPACT_SIDE) if compact else (width, height), right=RIGHT, top=TOP + above, bottom=0.52
        )
        ax, _ = add_grid_axes(figure, run_data.sizes, run_data.costs, layout)
        ax.set_title(COMPACT_TITLE if compact else TITLE, pad=8 + 72 * above)
        (draw_compact_winners if compact else draw_winners)(ax, tiles, colours)
        draw_legend(ax, colours, columns=columns)

    return Picture("winners", draw, TITLE)


def draw_winners(ax: Axes, tiles: Sequence[WinnerTile], colours: Mapping[str, str]) -> list[Artist]:
    """Draw tiles into axes in which each point is a unit square; return the artists."""
    return [
        artist for tile in tiles for artist in (*_draw_background(ax, tile, colours), *_draw_rows(ax, tile, colours))
    ]


def draw_compact_winners(ax: Axes, tiles: Sequence[WinnerTile], colours: Mapping[str, str]) -> list[Artist]:
    """Draw tiles without text and links as one mesh, in which a tie has the colour of no system; return the artists."""
    columns, rows = (int(end) for end in (ax.get_xlim()[1], ax.get_ylim()[1]))
    mesh: list[list[RGB]] = [[to_rgb(EMPTY)] * columns for _ in range(rows)]
    for tile in tiles:
        if tile.leaders:
            mesh[tile.row][tile.column] = tint(colours[tile.leaders[0]]) if tile.won else to_rgb(UNSUPPORTED)
    return [ax.pcolormesh(range(columns + 1), range(rows + 1), mesh, shading="flat")]


def _draw_background(ax: Axes, tile: WinnerTile, colours: Mapping[str, str]) -> list[Artist]:
    left, bottom, width, height = tile.column + 0.012, tile.row + 0.02, 0.976, 0.96
    alone = tile.won
    colour = tint(colours[tile.leaders[0]]) if alone else to_rgb(BACKGROUND)
    background = Rectangle((left, bottom), width, height, facecolor=colour)
    if alone:
        return [ax.add_patch(background)]
    share, strip = width / max(1, len(tile.leaders)), 0.35 / (len(tile.rows) + REMARK_LINES)
    bands = [
        Rectangle((left + number * share, bottom), share, strip, facecolor=tint(colours[system]))
        for number, system in enumerate(tile.leaders)
    ]
    return [ax.add_patch(patch) for patch in (background, *bands)]


def _draw_rows(ax: Axes, tile: WinnerTile, colours: Mapping[str, str]) -> list[Artist]:
    pitch = 1 / (len(tile.rows) + REMARK_LINES)
    artists: list[Artist] = []
    for number, (row, anchor) in enumerate(zip(tile.rows, tile.anchors, strict=True)):
        y = tile.row + 1 - pitch * (number + 0.85)
        marker = Rectangle((tile.column + 0.045, y - 0.2 * pitch), 0.03, 0.4 * pitch, facecolor=colours[row.system])
        font = FontProperties(
            size=8, weight="bold" if row.leads else "normal", style="normal" if row.has_rate else "italic"
        )
        artists += [
            ax.add_patch(marker),
            ax.text(tile.column + 0.1, y, row.system, color=INK, font=font, ha="left", va="center"),
            ax.text(
                tile.column + 0.965 - ERROR_SHARE * row.has_rate, y, row.claim,
                color=INK, font=font, ha="right", va="center",
            ),
            ax.text(tile.column + 0.965, y, row.error, color=INK, fontsize=6.5, ha="right", va="center"),
            _draw_link(ax, (tile.column, y - pitch / 2), pitch, anchor),
        ]  # fmt: skip
    for number, (remark, size) in enumerate(zip(tile.remarks, (7.2, 6.5), strict=True)):
        y = tile.row + pitch * (1.75 - 0.8 * number)
        artists.append(
            ax.text(tile.column + 0.045, y, remark, color=INK, fontsize=size, fontstyle="italic", va="center")
        )
    return artists


def _draw_link(ax: Axes, corner: tuple[float, float], height: float, anchor: str) -> Artist:
    return ax.add_patch(Rectangle(corner, 1, height, facecolor=PALE, alpha=0.0, zorder=9, url=f"#{anchor}"))


def draw_legend(ax: Axes, colours: Mapping[str, str], *, columns: int) -> list[Artist]:
    """Draw a legend of the systems above the axes, in that many columns; return the artists."""
    systems = [
        name for column in range(columns) for name in list(colours)[column::columns]
    ]  # a legend is filled by columns
    patches = [
        Patch(facecolor=tint(colour), edgecolor=colour, linewidth=1.0, label=system)
        for system in systems
        for colour in (colours[system],)
    ]
    legend = ax.legend(
        handles=patches, ncols=columns, loc="lower left", bbox_to_anchor=(-0.004, 1.0), borderaxespad=0.2
    )
    return [legend]
