"""Packings that only the tests use: of a whole list, by a tournament tree, and with several dimensions."""

from collections.abc import Sequence

from frameworks.harmonicio.engine.irm.packing import Fit, Packing, Rule, check_size, fits


def pack(sizes: Sequence[float], fit: Fit = "leq", rule: Rule = "first-fit") -> list[list[float]]:
    """Return the items of each bin, in order; raises RefusedError for an item that fits no bin."""
    packing = Packing(fit, rule=rule)
    for key, size in enumerate(sizes):
        packing.put(key, size)
    return [list(space.items.values()) for space in packing.bins]


def first_fit_by_tree(sizes: Sequence[float], fit: Fit = "leq") -> list[list[float]]:
    """Return the same by a tournament tree on free space: O(n log n) instead of O(n m)."""
    leaves = 1
    while leaves < max(1, len(sizes)):
        leaves *= 2
    most_free = [1.0] * (2 * leaves)
    bins: list[list[float]] = []
    for size in sizes:
        check_size(size, fit)
        node = 1
        while node < leaves:
            node = 2 * node if fits(size, most_free[2 * node], fit) else 2 * node + 1
        index = node - leaves
        while len(bins) <= index:
            bins.append([])
        bins[index].append(size)
        most_free[node] = min(1.0, max(0.0, most_free[node] - size))
        while node > 1:
            node //= 2
            most_free[node] = max(most_free[2 * node], most_free[2 * node + 1])
    return bins


def vector_first_fit(items: Sequence[Sequence[float]], fit: Fit = "leq", margin: float = 0.0) -> list[list[int]]:
    """Return the indices of the items by bin; an item fits where each of its dimensions (CPU, memory, network) does.

    The multi-dimensional fork uses "strict" with a margin of 0.05.
    """
    free: list[list[float]] = []
    bins: list[list[int]] = []
    for index, sizes in enumerate(items):
        for size in sizes:
            check_size(size, fit, margin)
        for space, members in zip(free, bins, strict=True):
            if all(fits(size, left, fit, margin) for size, left in zip(sizes, space, strict=True)):
                members.append(index)
                space[:] = [max(0.0, left - size) for size, left in zip(sizes, space, strict=True)]
                break
        else:
            free.append([1.0 - size for size in sizes])
            bins.append([index])
    return bins
