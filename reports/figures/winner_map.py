"""The winner map: at each point of the grid all systems' rates, the best in bold, coloured by who is the best."""

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from msgspec import Struct

from bench.model.measurement import Result
from reports.data.derived import rate_of
from reports.data.labels import MISSING, claim_of, status_of
from reports.data.run_data import CellData, RunData
from reports.data.winners import BaselineRun, contests_of
from reports.figures.figure import RIGHT, TOP, Picture
from reports.figures.heatmap import NARROWEST, SMALL, Frame, grid_axes, is_compact
from reports.figures.palette import EMPTY, GREY, INK, PALE, RGB, UNSUPPORTED, colours_of, tint

TITLE = "Top rates (messages/s), the best in bold"
COMPACT_TITLE = "Who is the best where"
LINE = 0.19
"""Inches from one line of a tile to the next."""


class Row(Struct, frozen=True):
    """One system's line in a tile."""

    system: str
    claim: str
    leads: bool
    plain: bool
    """whether it has no rate"""


class WinnerTile(Struct, frozen=True):
    """One point of the grid, ready to be drawn."""

    column: int
    row: int
    leaders: tuple[str, ...]
    rows: tuple[Row, ...]
    remark: str
    anchors: tuple[str, ...]
    """the section of each row's cell"""


def winner_tiles_of(run_data: RunData) -> list[WinnerTile]:
    """The tiles of the winner map."""
    return [_tile_of(contest, run_data) for contest in contests_of(run_data)]


def _tile_of(contest: BaselineRun, run_data: RunData) -> WinnerTile:
    rows = tuple(
        Row(known.cell.system, claim_of(known.result), known.cell.system in contest.leaders, not _has_rate(known))
        for known in contest.known
    )
    remarks = {"none": "no winner", "tie": "tie", "clear": ""}[contest.outcome]
    best = contest.best
    if contest.outcome == "clear" and best is not None:
        remarks = _lead_of(contest, best)
    if not contest.complete:
        remarks = f"{remarks}, so far".lstrip(", ")
    anchors = tuple(known.anchor for known in contest.known)
    return WinnerTile(
        run_data.sizes.index(contest.size), run_data.costs.index(contest.cost), contest.leaders, rows, remarks, anchors
    )


def _lead_of(contest: BaselineRun, best: Result) -> str:
    """By how much the best is ahead of the next one: a factor between two measured rates, else no more than what is certain."""
    others = [known.result for known in contest.known if known.result is not None and known.cell.system != best.system]
    reached = [rate for other in others if other.status == "measured" and (rate := rate_of(other))]
    unsure = not contest.complete or any(other.status in ("lower-bound", "upper-bound", "unstable") for other in others)
    rate = rate_of(best)
    if not reached or rate is None or unsure:
        return "at least" if best.status == "lower-bound" else ""
    factor = rate / max(reached)
    return f"{'≥ ' if best.status == 'lower-bound' else ''}{factor:.2g} × the next" if factor >= 1.05 else ""


def _has_rate(known: CellData) -> bool:
    return status_of(known) not in (MISSING, "failed", "unsupported")


def winners_of(run_data: RunData) -> Picture:
    """The picture of the winner map, with its legend."""
    tiles, colours = winner_tiles_of(run_data), colours_of(run_data.systems)
    compact = is_compact(run_data.sizes, run_data.costs)
    longest = max(len(system) for system in run_data.systems)
    width = 0.27 + 0.07 * (longest + 11.5)
    height = LINE * (len(run_data.systems) + 1.6)

    columns = max(1, int(max(NARROWEST, width * len(run_data.sizes)) / (0.5 + 0.072 * longest)))
    above = 0.2 * -(-len(run_data.systems) // columns) + 0.05

    def draw(figure: Figure) -> None:
        frame = Frame((SMALL, SMALL) if compact else (width, height), right=RIGHT, top=TOP + above, bottom=0.52)
        ax, _ = grid_axes(figure, run_data.sizes, run_data.costs, frame)
        ax.set_title(COMPACT_TITLE if compact else TITLE, pad=8 + 72 * above)
        (draw_compact_winners if compact else draw_winners)(ax, tiles, colours)
        draw_legend(ax, colours, columns=columns)

    return Picture("winners", draw, TITLE)


def draw_winners(ax: Axes, tiles: Sequence[WinnerTile], colours: Mapping[str, str]) -> list[Artist]:
    """Draw tiles into axes on which each point is a unit square; a tie has a strip in the colours of its leaders."""
    return [artist for tile in tiles for artist in (*_draw_ground(ax, tile, colours), *_draw_rows(ax, tile, colours))]


def draw_compact_winners(ax: Axes, tiles: Sequence[WinnerTile], colours: Mapping[str, str]) -> list[Artist]:
    """The same without words and links: one mesh, in which a tie has the colour of no system."""
    columns, rows = (int(end) for end in (ax.get_xlim()[1], ax.get_ylim()[1]))
    fields: list[list[RGB]] = [[to_rgb(EMPTY)] * columns for _ in range(rows)]
    for tile in tiles:
        if tile.leaders:
            fields[tile.row][tile.column] = (
                tint(colours[tile.leaders[0]]) if len(tile.leaders) == 1 else to_rgb(UNSUPPORTED)
            )
    return [ax.pcolormesh(range(columns + 1), range(rows + 1), fields, shading="flat")]


def _draw_ground(ax: Axes, tile: WinnerTile, colours: Mapping[str, str]) -> list[Artist]:
    left, bottom, width, height = tile.column + 0.012, tile.row + 0.02, 0.976, 0.96
    alone = len(tile.leaders) == 1
    env = Rectangle((left, bottom), width, height, facecolor=tint(colours[tile.leaders[0]]) if alone else "#f1f3f5")
    if alone:
        return [ax.add_patch(env)]
    share, strip = width / max(1, len(tile.leaders)), 0.95 / (len(tile.rows) + 1.6)
    bands = [
        Rectangle((left + number * share, bottom), share, strip, facecolor=tint(colours[system]))
        for number, system in enumerate(tile.leaders)
    ]
    return [ax.add_patch(patch) for patch in (env, *bands)]


def _draw_rows(ax: Axes, tile: WinnerTile, colours: Mapping[str, str]) -> list[Artist]:
    pitch = 1 / (len(tile.rows) + 1.6)
    artists: list[Artist] = []
    for number, (row, anchor) in enumerate(zip(tile.rows, tile.anchors, strict=True)):
        y = tile.row + 1 - pitch * (number + 0.85)
        weight = "bold" if row.leads else "normal"
        ink = GREY if row.plain else INK
        chip = Rectangle((tile.column + 0.045, y - 0.2 * pitch), 0.03, 0.4 * pitch, facecolor=colours[row.system])
        artists += [
            ax.add_patch(chip),
            ax.text(tile.column + 0.1, y, row.system, color=ink, fontsize=8, fontweight=weight, ha="left", va="center"),
            ax.text(
                tile.column + 0.95, y, row.claim, color=ink, fontsize=8, fontweight=weight, ha="right", va="center"
            ),
            _draw_link(ax, (tile.column, y - pitch / 2), pitch, anchor),
        ]
    if tile.remark:
        y = tile.row + 0.45 * pitch
        artists.append(
            ax.text(
                tile.column + 0.95, y, tile.remark, color=INK, fontsize=7.2, fontstyle="italic", ha="right", va="center"
            )
        )
    return artists


def _draw_link(ax: Axes, corner: tuple[float, float], height: float, anchor: str) -> Artist:
    return ax.add_patch(Rectangle(corner, 1, height, facecolor=PALE, alpha=0.0, zorder=9, url=f"#{anchor}"))


def draw_legend(ax: Axes, colours: Mapping[str, str], *, columns: int) -> list[Artist]:
    """Which colour is which system, above the axes."""
    systems = [name for column in range(columns) for name in list(colours)[column::columns]]  # it is filled by columns
    patches = [
        Patch(facecolor=tint(colour), edgecolor=colour, linewidth=1.0, label=system)
        for system in systems
        for colour in (colours[system],)
    ]
    legend = ax.legend(
        handles=patches, ncols=columns, loc="lower left", bbox_to_anchor=(-0.004, 1.0), borderaxespad=0.2
    )
    return [legend]
