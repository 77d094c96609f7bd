"""Values that follow from a cell's result."""

from msgspec.structs import replace
from sample_runs import QUICK, make_result

from bench.config.site import LoadHosts, Site
from bench.model.cell import Cell
from bench.model.measurement import Bound
from bench.units import Bandwidth
from producers.kafka.site import KafkaSite
from reports.data.derived import compute_bound_share, find_bound, get_shown_rate, network_bound
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


def test_an_upper_bound_is_shown_by_its_upper_end(run):
    """Also where the search has an estimate; a system that died has no rate."""
    bound = make_result(Cell("python", "kafka", 1000, 0.01), "upper-bound", estimate_hz=1010.0, high_hz=1106.0)
    assert get_shown_rate(bound) == 1106.0
    cell_data = CellData(bound.cell, replace(bound, bound="cpu", bound_hz=2212.0), ())
    assert compute_bound_share(read_run_data(run), cell_data) == 0.5
    assert get_shown_rate(replace(bound, status="failed", low_hz=900.0)) is None


def test_the_network_of_several_load_hosts_is_no_hard_bound(run):
    """Each has a card of its own; and within one machine messages cross no network."""
    run_data = read_run_data(run)
    cell = CellData(Cell("python", "kafka", 1000, 0.0), None, ())
    sections = {"kafka": KafkaSite("b1:9092")}
    sites = [
        Site(bandwidth=Bandwidth(1e6)),
        Site(bandwidth=Bandwidth(1e6), sections=sections),
        Site(bandwidth=Bandwidth(1e6), sections=sections, load=LoadHosts("127.0.0.1:5557", 3)),
    ]
    found = [replace(run_data, record=replace(run_data.record, site=site)) for site in sites]
    assert [network_bound(one, 1000) for one in found] == [None, 1000.0, None]
    assert [getattr(find_bound(one, cell), "hz", None) for one in found] == [None, 1000.0, None]
