"""The heatmap of one system: its maximum frequency over message size and CPU cost, with intervals and statuses."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from msgspec import Struct

from bench.units import rate_text, seconds_text, size_text
from reports.evidence import Evidence, Known
from reports.figure import BOTTOM, LEFT, TOP, Picture
from reports.wording import MISSING, best_rate, claim_of, interval_text, reason_of, shortened, status_of

WIDTH, HEIGHT = 1.16, 0.64
"""Of one cell, in inches."""
NARROWEST = 3.6
"""Inches for a title, however few the cells below it."""
COLOURS = LinearSegmentedColormap.from_list("stream", ["#f3f7d9", "#bfe3c6", "#6cc1c0", "#2f8fb8", "#2560a3", "#1c2f6b"])
"""From pale to dark in even steps of lightness, so that it also reads in grey print and without red or green."""
INK, PALE, GREY, RED, AMBER = "#1d2733", "#ffffff", "#6b7480", "#b3261e", "#d55e00"


class Tile(Struct, frozen=True):
    """One cell of a heatmap, ready to be drawn."""

    column: int
    row: int
    status: str
    rate: float | None
    """messages/s that give it its colour"""
    claim: str
    notes: tuple[str, ...]
    anchor: str


def tiles_of(evidence: Evidence, system: str) -> list[Tile]:
    """The tiles of one system's map; a point at which the scenario has no cell has no tile."""
    return [_tile_of(known, evidence.sizes, evidence.costs) for known in evidence.of_system(system)]


def _tile_of(known: Known, sizes: Sequence[int], costs: Sequence[float]) -> Tile:
    column, row = sizes.index(known.cell.message_bytes), costs.index(known.cell.cpu_seconds)
    result, status = known.result, status_of(known)
    if result is None:
        notes: tuple[str, ...] = (f"{len(known.trials)} trials so far",) if known.trials else ()
        return Tile(column, row, status, None, MISSING, notes, known.anchor)
    rate = result.high_hz if status == "upper-bound" else best_rate(result)
    interval = interval_text(result.low_hz, result.high_hz)
    words = {"measured": interval, "unstable": "unstable"}.get(status, reason_of(result))
    notes = tuple(note for note in (interval if status in ("unstable", "lower-bound") else "", words) if note)
    return Tile(column, row, status, rate, claim_of(result), notes, known.anchor)


def scale_of(evidence: Evidence) -> LogNorm:
    """One logarithmic colour scale for every map of a run, so that the maps can be compared."""
    rates = [tile.rate for system in evidence.systems for tile in tiles_of(evidence, system) if tile.rate]
    low, high = (min(rates), max(rates)) if rates else (1.0, 10.0)
    return LogNorm(low, high) if high > 1.5 * low else LogNorm(low / 3, high * 3)


def map_of(evidence: Evidence, system: str) -> Picture:
    """The picture of one system's map, with its colour bar."""
    tiles, scale = tiles_of(evidence, system), scale_of(evidence)

    def draw(figure: Figure) -> None:
        ax, inches = grid_axes(figure, evidence.sizes, evidence.costs, tile=(WIDTH, HEIGHT), right=1.0)
        ax.set_title(f"{system}: maximum frequency")
        draw_heatmap(ax, tiles, scale)
        width, height = figure.get_size_inches()
        bar = figure.add_axes(((LEFT + inches[0] + 0.16) / width, BOTTOM / height, 0.11 / width, inches[1] / height))
        draw_scale(bar, scale)

    return Picture(f"map-{system.replace('/', '-')}", draw)


def grid_axes(
    figure: Figure, sizes: Sequence[int], costs: Sequence[float], *, tile: tuple[float, float], right: float, top: float = TOP
) -> tuple[Axes, tuple[float, float]]:
    """Axes over message size and CPU cost in a figure that is made to fit them; with their width and height in inches."""
    inches = (tile[0] * len(sizes), tile[1] * len(costs))
    width, height = LEFT + max(NARROWEST, inches[0] + right), top + inches[1] + BOTTOM
    figure.set_size_inches(width, height)
    ax = figure.add_axes((LEFT / width, BOTTOM / height, inches[0] / width, inches[1] / height))
    ax.set_xlim(0, len(sizes))
    ax.set_ylim(0, len(costs))
    ax.set_xticks([column + 0.5 for column in range(len(sizes))], [size_text(size) for size in sizes])
    ax.set_yticks([row + 0.5 for row in range(len(costs))], [seconds_text(cost) for cost in costs])
    ax.set_xlabel("message size")
    ax.set_ylabel("CPU cost per message")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax, inches


def draw_heatmap(ax: Axes, tiles: Sequence[Tile], scale: LogNorm) -> list[Artist]:
    """Draw tiles into axes on which each cell is a unit square; the colour says the rate, the pattern says the status."""
    return [
        artist for tile in tiles for artist in (*_draw_ground(ax, tile, scale), *_draw_words(ax, tile, scale), draw_link(ax, tile))
    ]


def _draw_ground(ax: Axes, tile: Tile, scale: LogNorm) -> list[Artist]:
    colour = _colour_of(tile, scale)
    place = (tile.column + 0.015, tile.row + 0.025)
    ground = Rectangle(place, 0.97, 0.95, facecolor=colour)
    hatch = {"lower-bound": "////", "upper-bound": "\\\\\\\\", "unsupported": "xxx"}.get(tile.status)
    if hatch:
        ground.set(hatch=hatch, edgecolor=_hatch_colour(tile, colour), linewidth=0)
    artists: list[Artist] = [ax.add_patch(ground)]
    if tile.status == MISSING:
        artists.append(_draw_dots(ax, tile))
    outline = {"unstable": (AMBER, "-"), "failed": (RED, "-"), MISSING: ("#c3cad2", ":")}.get(tile.status)
    if outline:
        inside = Rectangle((place[0] + 0.012, place[1] + 0.022), 0.946, 0.906, fill=False)
        inside.set(edgecolor=outline[0], linestyle=outline[1], linewidth=1.0 if tile.status == MISSING else 2.0, zorder=2)
        artists.append(ax.add_patch(inside))
    return artists


def _draw_dots(ax: Axes, tile: Tile) -> Artist:
    """Rows of dots; as lines with round, empty dashes, since a hatch of dots makes an SVG of 80 kB."""
    heights = [tile.row + (n + 0.5) / 6 for n in range(6)]
    dots = ax.hlines(heights, tile.column + 0.06, tile.column + 0.95, colors="#c3cad2", linewidth=1.3, linestyles=(0, (0.01, 6)))
    dots.set_capstyle("round")
    return dots


def _colour_of(tile: Tile, scale: LogNorm) -> tuple[float, float, float]:
    if tile.rate is not None and tile.rate > 0:
        return to_rgb(COLOURS(scale(tile.rate)))
    return to_rgb({"failed": "#fdecea", "unsupported": "#e8eaed"}.get(tile.status, PALE))


def _hatch_colour(tile: Tile, ground: tuple[float, float, float]) -> str:
    if tile.status == "unsupported":
        return "#c8ced6"
    return "#ffffff66" if is_dark(ground) else "#1d273338"


def is_dark(colour: tuple[float, float, float]) -> bool:
    """Whether white text is easier to read on a colour than black text, by relative luminance (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] < 0.22


def _draw_words(ax: Axes, tile: Tile, scale: LogNorm) -> list[Artist]:
    ground = _colour_of(tile, scale)
    ink = {"failed": RED, "unsupported": GREY, MISSING: GREY}.get(tile.status, PALE if is_dark(ground) else INK)
    plain = tile.rate is None
    lines = [(tile.claim, 8.5 if plain else 10.5, "bold" if tile.status not in (MISSING, "unsupported") else "normal")]
    lines += [(shortened(note, 19), 6.8, "normal") for note in tile.notes]
    pitch = 0.22
    top = tile.row + 0.5 + pitch * (len(lines) - 1) / 2
    halo = {"facecolor": ground, "edgecolor": "none", "pad": 1.2} if tile.status not in ("measured", "unstable", "failed") else None
    return [
        ax.text(
            tile.column + 0.5,
            top - pitch * n,
            text,
            color=ink,
            fontsize=size,
            fontweight=weight,
            ha="center",
            va="center",
            bbox=halo,
        )
        for n, (text, size, weight) in enumerate(lines)
    ]


def draw_link(ax: Axes, tile: Tile) -> Artist:
    """A sheet of glass over a tile that leads to its section, so that its words can be clicked as well."""
    return ax.add_patch(Rectangle((tile.column, tile.row), 1, 1, facecolor=PALE, alpha=0.0, zorder=9, url=f"#{tile.anchor}"))


def draw_scale(ax: Axes, scale: LogNorm) -> list[Artist]:
    """The colour bar: logarithmic, with its unit."""
    bar = ax.figure.colorbar(ScalarMappable(scale, COLOURS), cax=ax)
    bar.outline.set_visible(False)
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 30 * low else (1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: rate_text(rate)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(labelsize=7.5, length=2)
    ax.set_ylabel("messages/s", fontsize=7.5)
    return [ax]
