"""Reports claim no more than is known: of cells without an answer, of bounds, of services on other hosts."""

import json

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from msgspec.structs import replace
from sample_runs import QUICK, make_measurement, make_result, make_run

from bench.analysis.comparison import claim_text
from bench.analysis.verdict import Verdict
from bench.config.site import Site
from bench.model.cell import Cell
from bench.model.measurement import Bound
from frameworks.spark.site import SparkSite
from producers.kafka.site import KafkaSite
from reports.data.bottleneck import find_bottleneck
from reports.data.derived import compute_used_cores, find_bound
from reports.data.labels import list_remarks
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.data.winners import rank_cells, summarize_run
from reports.figures.latency import collect_latency_curves, list_latency_trials
from reports.formats.csv_table import make_rows

FAST, SLOW = Cell("python", "kafka", 1000, 0.01), Cell("spark", "kafka", 1000, 0.01)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a finished run of the quick scenario."""
    return make_run(tmp_path_factory.mktemp("certain") / "run", QUICK, unfinished=())


def measured(cell, rate=100.0):
    """Return a cell with a measured rate and an interval of 3 %."""
    return CellData(cell, make_result(cell, "measured", estimate_hz=rate, low_hz=0.97 * rate, high_hz=1.03 * rate), ())


def failed(cell, reason):
    """Return a failed cell."""
    return CellData(cell, replace(make_result(cell, "failed"), reason=reason), ())


@pytest.mark.parametrize(
    ("reason", "complete"),
    [
        ("no valid trial: other work took 30% of this machine", False),
        ("kafka at 10.0.0.1:9092: no connection", False),
        ("impossible: 300 /s sustained, but theory allows 200 /s (cpu)", False),
        ("the framework died 2 times: out of memory", True),
    ],
)
def test_only_a_failed_system_that_died_is_beaten(reason, complete):
    """A cell that failed for another reason says nothing about its system."""
    (ranking,) = rank_cells([measured(FAST), failed(SLOW, reason)])
    assert ranking.leaders == ((FAST.system,) if complete else (FAST.system, SLOW.system))
    assert ranking.outcome == ("clear" if complete else "open")


def test_points_without_every_answer_are_not_counted_as_won(run):
    """The summary counts the points at which a system wins, and those that are open."""
    run_data = read_run_data(run)
    point = (run_data.sizes[0], run_data.costs[0])
    cells = tuple(
        replace(cell_data, result=replace(cell_data.result, status="failed", reason="no valid trial: generator"))
        if (cell_data.cell.message_bytes, cell_data.cell.cpu_seconds) == point
        and cell_data.cell.system == run_data.systems[0]
        else cell_data
        for cell_data in run_data.cells
    )
    summary = summarize_run(replace(run_data, cells=cells))
    assert "at all" not in summary
    assert "open" in summary


def test_the_bound_of_a_result_is_its_own(run):
    """It holds also if the load had a core to itself, or if a source sends each byte twice."""
    run_data = read_run_data(run)
    cell_data = measured(FAST)
    bounded = replace(cell_data, result=replace(cell_data.result, bound="network", bound_hz=150.0))
    assert find_bound(run_data, bounded) == Bound("network", 150.0)
    own = replace(run_data.record, scenario=replace(QUICK, load=replace(QUICK.load, cores=1)))
    unbounded = replace(cell_data, result=replace(cell_data.result, bound=None, bound_hz=None))
    assert find_bound(replace(run_data, record=own), unbounded) == Bound("cpu", 100.0)


def test_bounds_keep_their_sign(run):
    """The sign is in every column derived from the rate, and in comparisons."""
    run_data = read_run_data(run)
    for line, cell_data in zip(make_rows(run_data), run_data.cells, strict=True):
        if cell_data.result is not None and cell_data.result.status == "lower-bound":
            assert line.volume.startswith("≥ ")
            assert claim_text(cell_data.result).startswith("≥ ")


def test_the_cpu_of_a_service_on_another_host_is_unknown(run):
    """It is neither shown nor a bottleneck: only a client of the service runs on this machine."""
    busy = {
        "framework": 3.0,
        "source": 0.0,
        "load": 2.0,
        "harness": 1.0,
        "busy": 6.0,
        "seconds": 10.0,
        "available": 20.0,
    }
    sites = [
        Site(cores=16, sections={"spark": SparkSite("spark://h:7077")}),
        Site(sections={"kafka": KafkaSite("h:9092")}),
    ]
    for site in sites:
        run_data = read_run_data(run)
        trial = JudgedTrial(
            make_measurement(1, 120.0, 100.0, cpu=_of(site, busy)), Verdict("overloaded", "backlog grew", 0.1)
        )
        cell_data = replace(measured(SLOW), trials=(trial,))
        bottleneck = find_bottleneck(replace(run_data, record=replace(run_data.record, site=site)), cell_data)
        assert bottleneck is None or bottleneck.kind in ("not known", "CPU cost")
        sustained = replace(cell_data, trials=(JudgedTrial(trial.measurement, Verdict("sustained")),))
        assert compute_used_cores(sustained) is None


def test_the_cpu_share_of_a_service_on_another_host_is_unknown_in_old_runs_too(tmp_path):
    """Their cells.json has 0.0; the table leaves it empty."""
    folder = make_run(tmp_path / "run", QUICK, unfinished=())
    record = json.loads((folder / "run.json").read_text())
    record["site"]["sections"]["kafka"] = {"bootstrap": "h:9092"}
    (folder / "run.json").write_text(json.dumps(record))
    cells = read_run_data(folder).of_system("spark/kafka")
    assert {cell_data.result.cpu_share["source"] for cell_data in cells if cell_data.result.cpu_share} == {None}


def test_latencies_of_an_invalid_trial_are_not_drawn(run):
    """An invalid trial says nothing about the system; an overloaded one is marked."""
    run_data = read_run_data(run)
    trials = [
        JudgedTrial(make_measurement(n, 95.0, 95.0, "latency"), Verdict(word, ""))
        for n, word in enumerate(("invalid", "overloaded"))
    ]
    cell_data = replace(measured(SLOW), trials=tuple(trials))
    assert list_latency_trials(cell_data) == trials[1:]
    (curve,) = collect_latency_curves(run_data, cell_data)
    assert "overloaded" in curve.title


def _of(site, cpu):
    """Return the CPU by role without the roles on other hosts."""
    gone = {"framework"} if "spark" in site.sections else {"source"}
    return {role: value for role, value in cpu.items() if role not in gone}


@pytest.mark.parametrize(
    ("high", "leaders"),
    [(44.0, ("python/kafka",)), (60.0, ("python/kafka", "spark/kafka")), (900.0, ("python/kafka", "spark/kafka"))],
)
def test_an_unstable_cell_wins_nothing(high, leaders):
    """It may be as good as the best if twice the end of its interval reaches the best rate."""
    unstable = CellData(
        SLOW, make_result(SLOW, "unstable", estimate_hz=0.9 * high, low_hz=0.8 * high, high_hz=high), ()
    )
    assert rank_cells([measured(FAST), unstable])[0].leaders == leaders
    assert rank_cells([unstable])[0].leaders == ()


@pytest.mark.parametrize(("lent", "remarks"), [(True, 1), (False, 0)])
def test_lent_memory_is_a_remark_on_cells_that_fill_it(run, lent, remarks):
    """A cell of 100 MB/s and more needs new memory all the time; one of less does not."""
    run_data = read_run_data(run)
    large = measured(Cell("spark", "files", 10**6, 0.0001), 338.0)
    facts = {**run_data.record.facts, "memory_is_lent": lent}
    record = replace(run_data.record, facts=facts)
    found = list_remarks(replace(run_data, record=record, cells=(measured(FAST), large)))
    assert len(found) == remarks
    assert all(remark.startswith("spark/files: The host of this virtual machine lends memory") for remark in found)
