"""Hints from measured cells of the same system, and the order of the cells in which such hints help most."""

from collections.abc import Mapping, Sequence
from statistics import median

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.search.pooling import pool_noise, pool_warm_ups

BANDWIDTH = 200e6
"""Bytes/s that a source on one machine seldom exceeds; limits the hint for messages larger than any measured ones."""
WITHIN_BOUND = 0.8
"""Highest hint, as a share of the hard bound: the load generator and the source need a part of the same cores."""


def hint_of(cell: Cell, results: Sequence[Result], bound_hz: float | None = None) -> float | None:
    """Return an estimate of a cell's capacity in messages/s from other results; None if they give none.

    Between two sizes of the same cost, and between two costs of the same size, the time per message is interpolated
    linearly. Beyond the measured cells: a larger message has at most the same rate, and a higher cost adds its time on
    all cores. These are assumptions; a wrong hint costs trials, not correctness.

    Args:
        cell: The cell to be measured.
        results: Results of other cells; those of other systems are ignored.
        bound_hz: Hard bound of the cell in messages/s.
    """
    near = [(other, other.estimate_hz) for other in results if _has_capacity(other) and other.system == cell.system]
    rates = {(other.message_bytes, other.cpu_seconds): rate for other, rate in near if rate}
    between = [interpolate(cell, rates, bound_hz) for interpolate in (_interpolate_sizes, _interpolate_costs)]
    interpolated = next((hint for hint in between if hint is not None), None)
    if interpolated is not None:
        return interpolated
    beyond = [extrapolate(cell, rates, bound_hz) for extrapolate in (_extrapolate_cost, _extrapolate_size)]
    return min((hint for hint in beyond if hint is not None), default=None)


def fixed_share_of(cell: Cell, results: Sequence[Result]) -> float | None:
    """Return the fixed cost of a batch, as a share of the interval, that other cells of the system show; None if none.

    A cell whose rate would not rise if batches grew shows none: batches are not its limit.

    Args:
        cell: The cell to be measured.
        results: Results of other cells; those of other systems are ignored.
    """
    others = [other for other in results if other.system == cell.system and other.cell != cell]
    shares = [other.fixed_share for other in others if other.fixed_share is not None]
    return median(shares) if shares else None


def noise_of(cell: Cell, results: Sequence[Result]) -> tuple[float, ...]:
    """Return the probability of each noise of the search's grid that other cells show; empty if none shows any.

    Cells of other systems show what is usual on this machine, cells of the system what is usual for it.

    Args:
        cell: The cell to be measured.
        results: Results of the map's cells; that of `cell` is ignored.
    """
    shown = [other for other in results if other.noise and other.cell != cell]
    if not shown:
        return ()
    usual = pool_noise([other.noise for other in shown])
    return pool_noise([other.noise for other in shown if other.system == cell.system], usual)


def takes_evidence_of_others(result: Result) -> bool:
    """Return True if a result is computed again with what other cells show.

    One that is measured, or a bound that was an interval before the generator's limit cut it.
    """
    return result.status == "measured" or bool(result.noise)


def warm_ups_of(cell: Cell, results: Sequence[Result]) -> tuple[float, ...]:
    """Return the probability of each time until full speed that other cells of the system show; empty if none does.

    Args:
        cell: The cell to be measured.
        results: Results of the map's cells; that of `cell`, and those of other systems, are ignored.
    """
    own = [other for other in results if other.system == cell.system and other.cell != cell]
    shown = [other.warm_ups for other in own if other.warm_ups]
    return pool_warm_ups(shown) if shown else ()


def cell_order(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells system by system, each grid from its corners inwards.

    A coarse map is complete early, and most cells lie between two measured ones, whose hints are the best.
    """
    systems = list(dict.fromkeys(cell.system for cell in cells))
    order: list[Cell] = []
    for system in systems:
        own = [cell for cell in cells if cell.system == system]
        by_size = _ranks(sorted({cell.message_bytes for cell in own}))
        by_cost = _ranks(sorted({cell.cpu_seconds for cell in own}))
        order += sorted(own, key=lambda c: _priority(by_size[c.message_bytes], by_cost[c.cpu_seconds]))
    return tuple(order)


def _has_capacity(other: Result) -> bool:
    """Return True if the estimate of a result is about the system's capacity, and not the generator's."""
    return other.status == "measured" or (other.status == "lower-bound" and other.reason in ("budget", "highest"))


def _interpolate_sizes(cell: Cell, rates: dict[tuple[int, float], float], _: float | None) -> float | None:
    times: dict[float, float] = {size: 1 / rate for (size, cost), rate in rates.items() if cost == cell.cpu_seconds}
    return _interpolate(cell.message_bytes, times)


def _interpolate_costs(cell: Cell, rates: dict[tuple[int, float], float], _: float | None) -> float | None:
    times = {cost: 1 / rate for (size, cost), rate in rates.items() if size == cell.message_bytes}
    return _interpolate(cell.cpu_seconds, times)


def _interpolate(at: float, times: Mapping[float, float]) -> float | None:
    """Return the rate whose time for a message lies on the line between those of the nearest values around `at`."""
    low = max((value for value in times if value < at), default=None)
    high = min((value for value in times if value > at), default=None)
    if low is None or high is None:
        return None
    share = (at - low) / (high - low)
    return 1 / ((1 - share) * times[low] + share * times[high])


def _extrapolate_cost(cell: Cell, rates: dict[tuple[int, float], float], bound_hz: float | None) -> float | None:
    costs = [cost for size, cost in rates if size == cell.message_bytes and cost < cell.cpu_seconds]
    if not costs or bound_hz is None:
        return None
    rate, within = rates[cell.message_bytes, max(costs)], _share_of_cores(cell, rates, bound_hz)
    added = (cell.cpu_seconds - max(costs)) / cell.cpu_seconds / (within * bound_hz)  # seconds of all cores
    return min(WITHIN_BOUND * bound_hz, 1 / (1 / rate + added))


def _share_of_cores(cell: Cell, rates: dict[tuple[int, float], float], bound_hz: float) -> float:
    """Return the share of all cores that messages of a cell probably get.

    Cells of the same cost show it; one of a lower cost shows the least that it can be.
    """
    reached = {key: hz * key[1] / (bound_hz * cell.cpu_seconds) for key, hz in rates.items() if key[1] > 0}
    same = [share for (_, cost), share in reached.items() if cost == cell.cpu_seconds]
    if same or not reached:
        return max(same, default=WITHIN_BOUND)
    return (max(reached.values()) + WITHIN_BOUND) / 2


def _extrapolate_size(cell: Cell, rates: dict[tuple[int, float], float], _: float | None) -> float | None:
    sizes = [size for size, cost in rates if cost == cell.cpu_seconds and size < cell.message_bytes]
    return min(rates[max(sizes), cell.cpu_seconds], BANDWIDTH / cell.message_bytes) if sizes else None


def _ranks(values: Sequence[float]) -> dict[float, tuple[int, int]]:
    """Return the (round, index) of each value.

    Round 0 has both ends, round 1 the middle, round 2 the middles of both halves, and so on.
    """
    rounds = {0: 0, len(values) - 1: 0}
    spans, round_number = [(0, len(values) - 1)], 1
    while spans:
        halves = []
        for low, high in spans:
            middle = (low + high) // 2
            if low < middle < high:
                rounds[middle] = round_number
                halves += [(low, middle), (middle, high)]
        spans, round_number = halves, round_number + 1
    return {value: (rounds[index], index) for index, value in enumerate(values)}


def _priority(size: tuple[int, int], cost: tuple[int, int]) -> tuple[int, int, int]:
    """Return the sort key of a cell from the (round, index) of its size and its cost."""
    return max(size[0], cost[0]), cost[1], size[1]
