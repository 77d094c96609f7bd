"""What a map of one system can show: the frequency, how much of the bound that is, bytes a second, and where the CPU went."""

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure
from msgspec import Struct

from bench.units import rate_text, seconds_text, size_text
from reports.data.derived import bound_of, efficiency_of, rate_of, used_cores, useful_share
from reports.data.labels import MISSING, claim_of, interval_text, reason_of, sign_of, status_of
from reports.data.run_data import CellData, RunData
from reports.figures.figure import LEFT, Picture
from reports.figures.heatmap import (
    HEIGHT,
    SMALL,
    WIDTH,
    Frame,
    Tile,
    colour_of,
    draw_compact,
    draw_heatmap,
    draw_statuses,
    grid_axes,
    is_compact,
)
from reports.figures.scale import Scale, draw_scale, logarithmic, whole

Words = tuple[float | None, str, tuple[str, ...]]
"""The value that gives a cell its colour, its claim, and its small print."""


TOLERANCE = 0.02
"""A share above all by more than this is no rounding: it is not drawn as one."""


class Layer(Struct, frozen=True):
    """One kind of map."""

    name: str
    title: str
    about: str
    """what it shows, in a sentence or two"""
    words_of: Callable[[RunData, CellData], Words]
    scale_of: Callable[[list[float]], Scale]


def frequency_of(_: RunData, known: CellData) -> Words:
    """The highest frequency that was sustained, and the interval in which the top rate lies."""
    result, status = known.result, status_of(known)
    if result is None:
        return None, MISSING, (f"{len(known.trials)} trials so far",) if known.trials else ()
    rate = result.high_hz if status == "upper-bound" else rate_of(result)
    interval = interval_text(result.low_hz, result.high_hz)
    words = {"measured": interval, "unstable": "unstable"}.get(status, reason_of(result))
    return (
        rate,
        claim_of(result),
        tuple(note for note in (interval if status in ("unstable", "lower-bound") else "", words) if note),
    )


def efficiency_words(run_data: RunData, known: CellData) -> Words:
    """The rate as a share of what theory allows."""
    bound, share, sign = bound_of(run_data, known), efficiency_of(run_data, known), sign_of(known.result)
    if known.result is None or (share is None and known.result.status in ("failed", "unsupported")):
        return None, claim_of(known.result), ()
    if bound is None:
        return None, "no bound", ("known for this cell",)
    allowed = f"{bound.kind} allows {rate_text(bound.hertz)}"
    return (None, "no rate", (allowed,)) if share is None else (share, f"{sign}{100 * share:.3g} %", (allowed,))


def throughput_words(_: RunData, known: CellData) -> Words:
    """The rate in bytes a second."""
    result = known.result
    rate = result.high_hz if result is not None and result.status == "upper-bound" else rate_of(result)
    if rate is None or status_of(known) in ("failed", "unsupported"):
        return None, claim_of(result), ()
    volume = rate * known.cell.message_bytes
    return (
        volume,
        f"{sign_of(result)}{volume_text(volume)}",
        (f"{rate_text(rate)} × {size_text(known.cell.message_bytes)}",),
    )


def cpu_words(_: RunData, known: CellData) -> Words:
    """Useful CPU as a share of what framework and source used; where messages cost nothing, what each one took."""
    cores, share = used_cores(known), useful_share(known)
    if known.result is None or known.result.status in ("failed", "unsupported"):
        return None, claim_of(known.result), ()
    if cores is None or known.deciding is None:
        return None, "not accounted", ()
    each = cores / known.deciding.seen.planned.rate
    if share is None:
        return None, f"{seconds_text(each)} each", (f"{cores:.2f} cores, no cost",)
    if share > 1 + TOLERANCE:
        return None, "impossible", (f"{100 * share:.3g} % of the used CPU",)
    return min(share, 1.0), f"{100 * share:.3g} %", (f"of {cores:.2f} cores",)


def volume_text(volume: float) -> str:
    """Bytes a second as people read them: 12.3 MB/s."""
    return f"{size_text(volume)}/s"


LAYERS = (
    Layer(
        "map", "maximum frequency",
        "The highest frequency that the system sustained; below it the interval in which the top rate lies, or why it is a bound.",
        frequency_of, lambda found: logarithmic(found, rate_text, "messages/s"),
    ),
    Layer(
        "efficiency", "share of the theoretical bound",
        "The measured rate as a share of the lowest bound that is known: cores ÷ CPU cost, or the link’s bandwidth ÷ message size.",
        efficiency_words, lambda _: whole("of the bound"),
    ),
    Layer(
        "throughput", "throughput",
        "The same rates in bytes a second: rate × message size.",
        throughput_words, lambda found: logarithmic(found, volume_text, "bytes/s"),
    ),
    Layer(
        "cpu", "CPU efficiency",
        "At the confirmed rate, the CPU time that the messages themselves asked for as a share of all that framework and source "
        "used; where a message costs nothing, the CPU time that each one took.",
        cpu_words, lambda _: whole("useful CPU ÷ used CPU"),
    ),
)  # fmt: skip


def tiles_of(run_data: RunData, system: str, layer: Layer = LAYERS[0]) -> list[Tile]:
    """The tiles of one system's map; a point at which the scenario has no cell has no tile."""
    columns, rows = ({at: n for n, at in enumerate(axis)} for axis in (run_data.sizes, run_data.costs))
    return [
        Tile(columns[known.cell.message_bytes], rows[known.cell.cpu_seconds], status_of(known), *words, known.anchor)
        for known in run_data.of_system(system)
        for words in (layer.words_of(run_data, known),)
    ]


def layer_pictures(run_data: RunData, layer: Layer) -> list[Picture]:
    """The map of each system, on one scale; none where no cell has a value to show."""
    tiles = {system: tiles_of(run_data, system, layer) for system in run_data.systems}
    values = [tile.value for group in tiles.values() for tile in group if tile.value]
    if not values and layer is not LAYERS[0]:
        return []
    scale = layer.scale_of(values)
    return [_picture(run_data, layer, system, tiles=tiles[system], scale=scale) for system in run_data.systems]


def _picture(run_data: RunData, layer: Layer, system: str, *, tiles: list[Tile], scale: Scale) -> Picture:
    compact = is_compact(run_data.sizes, run_data.costs)

    def draw(figure: Figure) -> None:
        frame = Frame((SMALL, SMALL) if compact else (WIDTH, HEIGHT), right=1.0)
        ax, inches = grid_axes(figure, run_data.sizes, run_data.costs, frame)
        ax.set_title(f"{system}: {layer.title}")
        if compact:
            draw_compact(ax, tiles, partial(colour_of, scale=scale))
        else:
            draw_heatmap(ax, tiles, scale)
        draw_statuses(ax, tiles)
        width, height = figure.get_size_inches()
        bar = figure.add_axes(
            ((LEFT + inches[0] + 0.16) / width, frame.bottom / height, 0.11 / width, inches[1] / height)
        )
        draw_scale(bar, scale)

    return Picture(f"{layer.name}-{system.replace('/', '-')}", draw, f"{system}: {layer.title}")
