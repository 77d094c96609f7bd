"""Sanity checks: measurements that break conservation of messages, causality or a hard bound. They fail their cell."""

from bench.model.cell import Cell
from bench.model.measurement import Measurement
from bench.model.message_sizes import ENTRIES
from bench.units import rate_text, seconds_text, size_text

BOUND_TOLERANCE = 1.02
"""Factor by which a rate may exceed a bound: the error of two clocks and of the ends of a window."""
COST_TOLERANCE = 1e-3
"""Greatest relative difference between the CPU cost that headers asked for and that of the cell."""


def failed_sanity_check(
    measurement: Measurement, cell: Cell, *, bound_hz: float | None, link: float | None
) -> str | None:
    """Return the reason why a measurement is impossible, with its figures; None when it is possible.

    Args:
        measurement: The numbers of one trial.
        cell: The cell that was measured.
        bound_hz: Hard bound on the processed rate in messages/s.
        link: Bandwidth of the one network link between generator and system, in bytes/s.
    """
    rate = _processed_rate(measurement)
    moved = rate * cell.message_bytes
    different = measurement.processed - measurement.duplicated - measurement.processed_again
    if different > measurement.sent + measurement.failed and measurement.drained:
        return f"impossible: {different} different messages were processed, but {measurement.sent} were sent"
    if measurement.negative:
        return (
            f"impossible: {measurement.negative} of {measurement.processed} messages were done before they were sent:"
            " are the clocks apart?"
        )
    cost = measurement.processed * cell.cpu_seconds
    if abs(measurement.cpu_requested_s - cost) > COST_TOLERANCE * cost:
        return (
            f"impossible: {measurement.processed} messages of {seconds_text(cell.cpu_seconds)} cost {cost:.4g} s of CPU"
            f" time, but their headers asked for {measurement.cpu_requested_s:.4g} s"
        )
    if bound_hz is not None and rate > BOUND_TOLERANCE * bound_hz:
        own = ": the program does not spend the CPU cost of its messages" if measurement.cpu_used_s is None else ""
        return f"impossible: {rate_text(rate)} were processed, but theory allows {rate_text(bound_hz)}{own}"
    if link is not None and moved > BOUND_TOLERANCE * link and _has_mean_size(measurement, cell):
        return (
            f"impossible: {rate_text(rate)} of {size_text(cell.message_bytes)} are {size_text(moved)}/s,"
            f" but the link carries {size_text(link)}/s"
        )
    return None


def _has_mean_size(measurement: Measurement, cell: Cell) -> bool:
    """Return True if enough messages were processed for their mean size to be the cell's."""
    return cell.sizes is None or measurement.processed >= ENTRIES


def _processed_rate(measurement: Measurement) -> float:
    """Return the processed messages/s, averaged over the whole trial and its drain."""
    return measurement.processed / measurement.seconds if measurement.seconds > 0 else 0.0
