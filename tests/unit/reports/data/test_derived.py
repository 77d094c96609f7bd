"""Values that follow from a cell's result."""

from msgspec.structs import replace
from sample_runs import QUICK, make_result

from bench.model.cell import Cell
from bench.model.measurement import Bound
from reports.data.derived import find_bound
from reports.data.run_data import CellData, read_run_data


def test_the_bound_of_a_result_is_its_own(run):
    """It holds also if the load had a core to itself, or if a source sends each byte twice."""
    run_data = read_run_data(run)
    cell = Cell("python", "kafka", 1000, 0.01)
    cell_data = CellData(cell, make_result(cell), ())
    bounded = replace(cell_data, result=replace(cell_data.result, bound="network", bound_hz=150.0))
    assert find_bound(run_data, bounded) == Bound("network", 150.0)
    own = replace(run_data.record, scenario=replace(QUICK, load=replace(QUICK.load, cores=1)))
    unbounded = replace(cell_data, result=replace(cell_data.result, bound=None, bound_hz=None))
    assert find_bound(replace(run_data, record=own), unbounded) == Bound("cpu", 100.0)
