"""What theory allows a cell, and which of the known limits a trial ran into."""

from collections.abc import Mapping

from bench.scenario import Cell

BUSY = 0.9
"""A machine is taken for the limit when it was busy for this share of its cores' time."""


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
