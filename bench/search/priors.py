"""Where the answer of a cell may lie, from the cells of the same system that have one; and the order in which that helps most."""

import math
from collections.abc import Sequence

from bench.model.cell import Cell
from bench.model.measurement import Result

BANDWIDTH = 200e6
"""Bytes/s that a source on one machine seldom exceeds: a guess for larger messages of which nothing is known."""
WITHIN_BOUND = 0.95


def hint_of(cell: Cell, known: Sequence[Result], bound_hz: float | None = None) -> float | None:
    """About where the ceiling of a cell may lie, in messages/s; None when no neighbour says.

    Between two sizes of the same cost the logarithm of the rate follows that of the size; between two costs of the same size the
    time per message follows the cost. Beyond them, a larger message is at most as frequent, and costs take time on every core.
    """
    near = [(other, other.estimate_hz) for other in known if _says_something(other) and other.system == cell.system]
    rates = {(other.message_bytes, other.cpu_seconds): rate for other, rate in near if rate}
    guesses = [guess(cell, rates, bound_hz) for guess in (_between_sizes, _between_costs)]
    sure = next((guess for guess in guesses if guess is not None), None)
    if sure is not None:
        return sure
    beyond = [guess(cell, rates, bound_hz) for guess in (_beyond_cost, _beyond_size)]
    return min((guess for guess in beyond if guess is not None), default=None)


def cell_order(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of one system after the other, from its corners inwards: a coarse map stands early, neighbours know more."""
    systems = list(dict.fromkeys(cell.system for cell in cells))
    found: list[Cell] = []
    for system in systems:
        own = [cell for cell in cells if cell.system == system]
        by_size = _ranks(sorted({cell.message_bytes for cell in own}))
        by_cost = _ranks(sorted({cell.cpu_seconds for cell in own}))
        found += sorted(own, key=lambda c: _turn(by_size[c.message_bytes], by_cost[c.cpu_seconds]))
    return tuple(found)


def _says_something(other: Result) -> bool:
    return other.status == "measured" or (other.status == "lower-bound" and other.reason in ("budget", "highest"))


def _between_sizes(cell: Cell, rates: dict[tuple[int, float], float], _: float | None) -> float | None:
    sizes = sorted(size for size, cost in rates if cost == cell.cpu_seconds)
    below, above = (
        [size for size in sizes if size < cell.message_bytes],
        [size for size in sizes if size > cell.message_bytes],
    )
    if not below or not above:
        return None
    low, high = below[-1], above[0]
    share = math.log(cell.message_bytes / low) / math.log(high / low)
    return float(rates[low, cell.cpu_seconds] ** (1 - share) * rates[high, cell.cpu_seconds] ** share)


def _between_costs(cell: Cell, rates: dict[tuple[int, float], float], _: float | None) -> float | None:
    costs = sorted(cost for size, cost in rates if size == cell.message_bytes)
    below, above = (
        [cost for cost in costs if cost < cell.cpu_seconds],
        [cost for cost in costs if cost > cell.cpu_seconds],
    )
    if not below or not above:
        return None
    low, high = below[-1], above[0]
    share = (cell.cpu_seconds - low) / (high - low)
    return 1 / ((1 - share) / rates[cell.message_bytes, low] + share / rates[cell.message_bytes, high])


def _beyond_cost(cell: Cell, rates: dict[tuple[int, float], float], bound_hz: float | None) -> float | None:
    costs = [cost for size, cost in rates if size == cell.message_bytes and cost < cell.cpu_seconds]
    if not costs or bound_hz is None:
        return None
    rate = rates[cell.message_bytes, max(costs)]
    own = (
        (cell.cpu_seconds - max(costs)) / cell.cpu_seconds / bound_hz
    )  # seconds of all cores that the further cost takes
    return min(WITHIN_BOUND * bound_hz, 1 / (1 / rate + own))


def _beyond_size(cell: Cell, rates: dict[tuple[int, float], float], _: float | None) -> float | None:
    sizes = [size for size, cost in rates if cost == cell.cpu_seconds and size < cell.message_bytes]
    return min(rates[max(sizes), cell.cpu_seconds], BANDWIDTH / cell.message_bytes) if sizes else None


def _ranks(values: Sequence[float]) -> dict[float, tuple[int, int]]:
    """For each value the round in which it comes: 0 for both ends, then the middles, the middles between these, ..."""
    rounds = {0: 0, len(values) - 1: 0}
    spans, turn = [(0, len(values) - 1)], 1
    while spans:
        halves = []
        for low, high in spans:
            middle = (low + high) // 2
            if low < middle < high:
                rounds[middle] = turn
                halves += [(low, middle), (middle, high)]
        spans, turn = halves, turn + 1
    return {value: (rounds[place], place) for place, value in enumerate(values)}


def _turn(size: tuple[int, int], cost: tuple[int, int]) -> tuple[int, int, int]:
    return max(size[0], cost[0]), cost[1], size[1]
