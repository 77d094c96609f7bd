"""What theory allows a cell, and which of the known limits a trial ran into."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from bench.model.cell import Cell
from bench.model.measurement import Bound

BUSY = 0.9
"""A machine is taken for the limit when it was busy for this share of its cores' time."""

NEAR = 0.9
"""A cell that reaches this share of a roof carries its name."""


class Copies(Struct, frozen=True):
    """What a source makes of each byte of a message: how often one of its network cards, in its busier direction, and one of its
    disks sees it."""

    network: float
    disk: float


def roofs(
    cell: Cell, cores: int, copies: Copies | None, *, network: float | None, disk: float | None, cards: bool = False
) -> list[Bound]:
    """The roofs over a cell that are known, the lowest first; `network` and `disk` are bytes/s of one card and one disk.

    That messages cross one card once is sure, unless several hosts send (`cards`); how often they cross a broker's depends on where
    it has put them.
    """
    found = [Bound("cpu", cpu, hard=True)] if (cpu := cpu_bound(cell, cores)) is not None else []
    if network is not None:
        found.append(Bound("network", network / cell.message_bytes, hard=not cards))
        if copies is not None and copies.network > 1:
            found.append(Bound("network", network / (cell.message_bytes * copies.network), hard=False))
    if disk is not None and copies is not None and copies.disk > 0:
        found.append(Bound("disk", disk / (cell.message_bytes * copies.disk), hard=False))
    return sorted(found, key=lambda roof: roof.hz)


def reached_bound(rate: float, known: Sequence[Bound]) -> Bound | None:
    """The lowest roof if the rate is near it; None when there is room."""
    return next((roof for roof in known if rate >= NEAR * roof.hz), None)


def cpu_bound(cell: Cell, cores: int) -> float | None:
    """Messages/s at which the messages alone need all cores: cores / cost. None when they cost nothing."""
    return cores / cell.cpu_seconds if cell.cpu_seconds > 0 else None


def limited_by(why: str, cpu: Mapping[str, float]) -> str | None:
    """The limit that an overloaded trial shows, given why it was overloaded and its CPU seconds; None when nothing tells it."""
    if "pushed back" in why:
        return "source"
    busy, available = cpu.get("busy"), cpu.get("available")
    if busy is not None and available and busy >= BUSY * available:
        return "cpu"
    return None
