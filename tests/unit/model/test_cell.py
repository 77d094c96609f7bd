"""A cell has a name of its own."""

from bench.model.cell import Cell
from bench.model.message_sizes import Sizes


def test_cells_of_one_grid_have_different_names():
    """Even nearly equal sizes have different names, since files are named after cells."""
    sizes = Sizes(choice=((100, 1.0),))
    names = [Cell("a", "b", 1000, 0.0).name, Cell("a", "b", 1001, 0.0).name, Cell("a", "b", 1000, 0.0, sizes).name]
    assert len(set(names)) == 3
