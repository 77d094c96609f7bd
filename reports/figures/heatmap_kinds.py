"""The kinds of heatmaps of a system: throughput in messages and in bytes, share of the bound, and CPU efficiency."""

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure
from msgspec import Struct

from bench.analysis.intervals import has_bracket
from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import (
    compute_bound_share,
    compute_used_cores,
    compute_useful_cpu_share,
    find_bound,
    get_shown_rate,
)
from reports.data.labels import (
    MISSING,
    WITHOUT_RATE,
    format_claim,
    format_interval,
    format_reason,
    format_sign,
    status_of,
)
from reports.data.run_data import CellData, RunData
from reports.figures.figure import LEFT, Picture
from reports.figures.heatmap import (
    COMPACT_SIDE,
    HEIGHT,
    WIDTH,
    MapLayout,
    Tile,
    add_grid_axes,
    choose_colour,
    draw_compact,
    draw_heatmap,
    draw_statuses,
    is_compact,
)
from reports.figures.scale import Scale, draw_scale, make_log_scale, make_share_scale

CellText = tuple[float | None, str, tuple[str, ...]]
"""The value that sets a cell's colour, its main text, and its small print."""
ROUNDING = 0.02
"""A share may exceed 1 by this much before it is called impossible."""


class HeatmapKind(Struct, frozen=True):
    """One kind of heatmap."""

    name: str
    title: str
    about: str
    """one or two sentences on what it shows"""
    describe: Callable[[RunData, CellData], CellText]
    make_scale: Callable[[list[float]], Scale]


def describe_rate(_: RunData, cell_data: CellData) -> CellText:
    """Return the maximum sustainable throughput in messages/s, with its interval or the reason why it is a bound."""
    result, status = cell_data.result, status_of(cell_data)
    if result is None:
        return None, MISSING, (f"{len(cell_data.trials)} trials so far",) if cell_data.trials else ()
    rate = get_shown_rate(result)
    kind = "bracket" if has_bracket(result) else ""
    text = {"measured": kind, "unstable": "unstable"}.get(status, format_reason(result))
    notes = (format_interval(result.low_hz, result.high_hz), text)
    return rate, format_claim(result), tuple(note for note in notes if note)


def describe_bound_share(run_data: RunData, cell_data: CellData) -> CellText:
    """Return the rate as a share of the theoretical bound."""
    result = cell_data.result
    bound, share = find_bound(run_data, cell_data), compute_bound_share(run_data, cell_data)
    if result is None or (share is None and result.status in WITHOUT_RATE):
        return None, format_claim(result), ()
    if bound is None:
        return None, "no bound", ("known for this cell",)
    allowed = f"{bound.name} allows {rate_text(bound.hz)}"
    if share is None:
        return None, "no rate", (allowed,)
    return share, f"{format_sign(result)}{100 * share:.3g} %", (allowed,)


def describe_byte_rate(_: RunData, cell_data: CellData) -> CellText:
    """Return the rate in bytes/s."""
    result, size = cell_data.result, cell_data.cell.message_bytes
    rate = get_shown_rate(result)
    if rate is None or status_of(cell_data) in WITHOUT_RATE:
        return None, format_claim(result), ()
    claim = f"{format_sign(result)}{format_byte_rate(rate * size)}"
    return rate * size, claim, (f"{rate_text(rate)} × {size_text(size)}",)


def describe_cpu(_: RunData, cell_data: CellData) -> CellText:
    """Return the useful share of the CPU in use; if messages cost nothing, the CPU time of each message."""
    cores, share = compute_used_cores(cell_data), compute_useful_cpu_share(cell_data)
    if cell_data.result is None or cell_data.result.status in WITHOUT_RATE:
        return None, format_claim(cell_data.result), ()
    if cores is None or cell_data.deciding is None:
        return None, "CPU unknown", ()
    each = cores / cell_data.deciding.measurement.planned.rate
    if share is None:
        return None, f"{seconds_text(each)} each", (f"{cores:.2f} cores, no cost",)
    if share > 1 + ROUNDING:
        return None, "impossible", (f"{100 * share:.3g} % of the used CPU",)
    return min(share, 1.0), f"{100 * share:.3g} %", (f"of {cores:.2f} cores",)


def format_byte_rate(volume: float) -> str:
    """Return bytes/s as text, such as "12.3 MB/s"."""
    return f"{size_text(volume)}/s"


HEATMAP_KINDS = (
    HeatmapKind(
        "map", "maximum throughput",
        "The maximum sustainable throughput (messages/s): the estimate, and below it the 95 % interval in which it "
        "lies; for a bound (≥ or ≤) the reason why it is one.",
        describe_rate, lambda rates: make_log_scale(rates, rate_text, "messages/s"),
    ),
    HeatmapKind(
        "efficiency", "share of the theoretical bound",
        "The measured rate as a share of the lowest known bound: cores ÷ CPU cost, or bandwidth ÷ message size.",
        describe_bound_share, lambda _: make_share_scale("of the bound"),
    ),
    HeatmapKind(
        "throughput", "throughput in bytes",
        "The same rates in bytes per second: rate × message size.",
        describe_byte_rate, lambda volumes: make_log_scale(volumes, format_byte_rate, "bytes/s"),
    ),
    HeatmapKind(
        "cpu", "CPU efficiency",
        "The messages’ own CPU cost as a share of the CPU time that framework and source used at the confirmed rate; "
        "where messages cost nothing, the CPU time per message.",
        describe_cpu, lambda _: make_share_scale("useful CPU ÷ used CPU"),
    ),
)  # fmt: skip


def make_tiles(run_data: RunData, system: str, kind: HeatmapKind = HEATMAP_KINDS[0]) -> list[Tile]:
    """Return the tiles of one system's map; a point at which the scenario has no cell has no tile."""
    columns, rows = ({at: n for n, at in enumerate(axis)} for axis in (run_data.sizes, run_data.costs))
    return [
        Tile(
            columns[cell_data.cell.message_bytes],
            rows[cell_data.cell.cpu_seconds],
            status_of(cell_data),
            *kind.describe(run_data, cell_data),
            cell_data.anchor,
        )
        for cell_data in run_data.of_system(system)
    ]


def make_heatmaps(run_data: RunData, kind: HeatmapKind) -> list[Picture]:
    """Return the map of each system, on one scale; none if no cell has a value to show."""
    tiles = {system: make_tiles(run_data, system, kind) for system in run_data.systems}
    values = [tile.value for group in tiles.values() for tile in group if tile.value]
    if not values and kind is not HEATMAP_KINDS[0]:
        return []
    scale = kind.make_scale(values)
    return [_make_picture(run_data, kind, system, tiles=tiles[system], scale=scale) for system in run_data.systems]


def _make_picture(run_data: RunData, kind: HeatmapKind, system: str, *, tiles: list[Tile], scale: Scale) -> Picture:
    compact = is_compact(run_data.sizes, run_data.costs)

    def draw(figure: Figure) -> None:
        layout = MapLayout((COMPACT_SIDE, COMPACT_SIDE) if compact else (WIDTH, HEIGHT), right=1.0)
        ax, inches = add_grid_axes(figure, run_data.sizes, run_data.costs, layout)
        ax.set_title(f"{system}: {kind.title}")
        if compact:
            draw_compact(ax, tiles, partial(choose_colour, scale=scale))
        else:
            draw_heatmap(ax, tiles, scale)
        draw_statuses(ax, tiles)
        width, height = figure.get_size_inches()
        bar = figure.add_axes(
            ((LEFT + inches[0] + 0.16) / width, layout.bottom / height, 0.11 / width, inches[1] / height)
        )
        draw_scale(bar, scale)

    return Picture(f"{kind.name}-{system.replace('/', '-')}", draw, f"{system}: {kind.title}")
