"""The bounds of a cell are those of the formulas, and a cell near one carries its name."""

from bench.analysis.bounds import Copies, cell_bounds, reached_bound
from bench.model.cell import Cell
from bench.model.measurement import Bound

CELL = Cell("python", "kafka", 1000, 0.01)


def test_the_lowest_bound_comes_first():
    """125 MB/s carry 125,000 messages of 1 kB, and a third of it where each goes to three; two cores work on 200 of 10
    ms.
    """
    known = cell_bounds(CELL, 2, Copies(network=3, disk=3), network=125e6, disk=900e6)
    network = [Bound("network", 125e6 / 3000, hard=False), Bound("network", 125_000.0)]
    assert known == [Bound("cpu", 200.0), network[0], network[1], Bound("disk", 300_000.0, hard=False)]


def test_an_unknown_resource_has_no_bound():
    """Neither a network within one machine nor a disk of which nobody said how fast it is."""
    assert cell_bounds(Cell("python", "tcp", 100, 0.0), 2, None, network=None, disk=None) == []


def test_a_rate_near_a_bound_has_reached_it():
    """A rate counts as near from nine tenths of the bound on."""
    known = [Bound("network", 100.0), Bound("disk", 1000.0, hard=False)]
    assert reached_bound(89.0, known) is None
    assert reached_bound(90.0, known) == known[0]
