"""Results that cannot be: every tool of the field has shown one of them at least once; here they stop the cell."""

from bench.model.cell import Cell
from bench.model.measurement import Measurement
from bench.model.message_sizes import ENTRIES
from bench.units import rate_text, size_text

TOLERANCE = 1.02
"""Of a bound: what two clocks and the ends of a window may differ by."""


def failed_sanity_check(seen: Measurement, cell: Cell, *, bound_hz: float | None, link: float | None) -> str | None:
    """Why a trial's numbers are impossible, with the figures; None when they are not. `link` is in bytes/s."""
    rate = _processed_rate(seen)
    moved = rate * cell.message_bytes
    if seen.processed - seen.duplicated > seen.sent + seen.failed and seen.drained:
        more = seen.processed - seen.duplicated
        return f"impossible: {more} different messages were processed, but {seen.sent} were sent"
    if seen.negative:
        return f"impossible: {seen.negative} of {seen.processed} messages were done before they were sent: are the clocks apart?"
    if bound_hz is not None and rate > TOLERANCE * bound_hz:
        return f"impossible: {rate_text(rate)} were processed, but theory allows {rate_text(bound_hz)}"
    if link is not None and moved > TOLERANCE * link and _mean_holds(seen, cell):
        return (
            f"impossible: {rate_text(rate)} of {size_text(cell.message_bytes)} are {size_text(moved)}/s,"
            f" but the link carries {size_text(link)}/s"
        )
    return None


def _mean_holds(seen: Measurement, cell: Cell) -> bool:
    """Whether so many messages were processed that their sizes have the cell's mean: a few may all be small, or large."""
    return cell.sizes is None or seen.processed >= ENTRIES


def _processed_rate(seen: Measurement) -> float:
    """Messages/s over the whole trial: what was processed in all, by the time that it took."""
    return seen.processed / seen.seconds if seen.seconds > 0 else 0.0
