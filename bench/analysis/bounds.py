"""Bounds on the rate of a cell by CPU, network and disk, and the resource that limited an overloaded trial."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bench.model.cell import Cell
from bench.model.measurement import Bound

MIN_BUSY_SHARE = 0.9
"""From this share of its cores' time on, a busy machine counts as the limit."""

NEAR = 0.9
"""A cell that reaches this share of a bound is limited by it."""


class Copies(Struct, frozen=True):
    """Transfers of each byte of a message by a source.

    `network` counts those through the busier direction of one of its network cards, `disk` those to one of its disks.
    """

    network: float
    disk: float


def cell_bounds(  # noqa: PLR0913  every known limit of a cell; there is one call
    cell: Cell, cores: int, copies: Copies | None, *, network: float | None, disk: float | None, cards: bool = False
) -> list[Bound]:
    """Return the known bounds on the rate of a cell, the lowest first.

    Every message crosses one network card once, so this bound is hard, unless several hosts send. How often a message
    crosses a broker's card depends on the placement of its partitions, so that bound is soft, as is the disk's (writes
    are buffered in memory).

    Args:
        cell: The cell; its message size is in bytes, its CPU cost in seconds.
        cores: CPU cores that process messages.
        copies: Copies of each message that the source makes; None where it is not known.
        network: Bandwidth of one network card in bytes/s; None where no network is crossed or its bandwidth is not
            known.
        disk: Bandwidth of one disk in bytes/s; None where it is not known.
        cards: True if several hosts, each with its own card, send the messages.
    """
    bounds = [Bound("cpu", cpu, hard=True)] if (cpu := cpu_bound(cell, cores)) is not None else []
    if network is not None:
        bounds.append(Bound("network", network / cell.message_bytes, hard=not cards))
        if copies is not None and copies.network > 1:
            bounds.append(Bound("network", network / (cell.message_bytes * copies.network), hard=False))
    if disk is not None and copies is not None and copies.disk > 0:
        bounds.append(Bound("disk", disk / (cell.message_bytes * copies.disk), hard=False))
    return sorted(bounds, key=lambda bound: bound.hz)


def reached_bound(rate: float, bounds: Sequence[Bound]) -> Bound | None:
    """Return the first of `bounds`, sorted upwards, of which `rate` reaches the share NEAR; None if there is none."""
    return next((bound for bound in bounds if rate >= NEAR * bound.hz), None)


def cpu_bound(cell: Cell, cores: int) -> float | None:
    """Return the messages/s whose CPU cost needs all cores: cores / cost. None when they cost nothing."""
    return cores / cell.cpu_seconds if cell.cpu_seconds > 0 else None


def infer_limit(why: str, cpu: Mapping[str, float]) -> str | None:
    """Return the resource that limited an overloaded trial: "source", "cpu", or None when its figures do not show one.

    Args:
        why: The reason in the trial's verdict.
        cpu: CPU seconds of the trial by role, with `busy` and `available` of the whole machine.
    """
    if "pushed back" in why:
        return "source"
    busy, available = cpu.get("busy"), cpu.get("available")
    if busy is not None and available and busy >= MIN_BUSY_SHARE * available:
        return "cpu"
    return None
