"""The resource usage of a cell by role, and cells with different message sizes."""

import shlex
from itertools import pairwise

import pytest
from msgspec.structs import replace
from sample_runs import QUICK, make_measurement, make_run

from bench.analysis.verdict import Verdict
from bench.config.scenario import Grid
from bench.model.cell import Cell
from bench.model.measurement import ClockOffset
from bench.model.message_sizes import MessageSize, Sizes
from reports.data.resources import HEADINGS, describe_resources
from reports.data.run_data import JudgedTrial, MeanSize, read_run_data
from reports.formats.cell_details import describe_cells
from reports.formats.csv_table import write

CHOICE = MessageSize.read({"choice": {"100 B": "90 %", "10 kB": "10 %"}})
MIXED = replace(QUICK, systems=("python/kafka",), grid=Grid((MessageSize(100), CHOICE)))


@pytest.fixture(scope="module")
def run_data(tmp_path_factory):
    """Return a run with a cell of one size and a cell of a distribution of sizes."""
    run = make_run(tmp_path_factory.mktemp("mixed") / "run", MIXED, unfinished=())
    write(run)
    return read_run_data(run)


def table(**more):
    """Return the resource table of a trial, by role and heading."""
    judged = JudgedTrial(make_measurement(1, 100.0, 200.0, **more), Verdict("sustained"))
    return {row[0]: dict(zip(HEADINGS, row, strict=True)) for row in describe_resources(judged)}


def test_each_role_has_its_share_of_the_window():
    """CPU is in cores, volumes are in bytes/s, garbage collection is a percentage of the time."""
    used = {
        "source": {
            "sent_bytes": 1e7,
            "received_bytes": 2e7,
            "read_bytes": 0.0,
            "written_bytes": 3e7,
            "gc_seconds": 0.05,
        }
    }
    row = table(cpu={"seconds": 10.0, "source": 5.0, "busy": 9.0}, usage=used)["source’s servers"]
    assert [row[name] for name in HEADINGS[1:]] == ["0.50", "800 MB", "1 MB/s", "2 MB/s", "0 B/s", "3 MB/s", "0.5 %"]


def test_an_unknown_value_is_a_dash_and_not_zero():
    """A framework without a JVM has no garbage collection, and a kernel may have no socket counters."""
    row = table(usage={"framework": {"read_bytes": 0.0, "written_bytes": 0.0}})["framework"]
    assert (row["Sent"], row["GC"], row["Disk read"]) == ("–", "–", "0 B/s")


def test_hosts_of_a_site_have_rows_of_their_own():
    """They come after the roles; what their exporter does not serve is a dash."""
    used = {"seconds": 10.0, "available": 40.0, "busy": 25.0, "steal": 0.0, "sent_bytes": 5e7, "memory_bytes": 2e9}
    rows = table(hosts={"b-2": used, "b-1": {"steal": 0.0, "available": 20.0}})
    assert list(rows)[-1] == "host b-2"
    assert "host b-1" not in rows
    shown = [rows["host b-2"][name] for name in HEADINGS[1:]]
    assert shown == ["2.50", "2 GB", "5 MB/s", "–", "–", "–", "–"]


def test_latencies_of_several_hosts_show_the_uncertainty_of_the_clocks(run_data):
    """It stands beside each latency, in the trials and in the table of latencies."""
    first, *rest = run_data.cells
    trials = tuple(
        replace(one, measurement=replace(one.measurement, clocks=ClockOffset("b1", -0.0004, 0.0008, 0.0012)))
        for one in first.trials
    )
    details = describe_cells(replace(run_data, cells=(replace(first, trials=trials), *rest)))[first.anchor]
    assert all(trial.p99.endswith("± 1.2 ms") for trial in details.trials if trial.p99)
    assert any("±" in text for row in details.latency for text in row)


def test_without_cpu_measurements_there_is_no_table():
    """A run on several hosts may have no CPU measurements."""
    assert (
        describe_resources(None)
        == describe_resources(JudgedTrial(make_measurement(1, 100.0, 200.0, cpu={}), Verdict("sustained")))
        == ()
    )


def test_a_cell_shows_its_resource_usage_and_its_message_sizes(run_data):
    """Its details list the different sizes beside their mean."""
    details = next(one for one in describe_cells(run_data).values() if "mean" in one.point)
    assert details.resources
    assert any("90 % 100 B, 10 % 10 kB" in sentence for sentence in details.sentences)


def test_a_map_marks_the_size_that_is_a_mean(run_data):
    """Other sizes have no mark."""
    assert [isinstance(size, MeanSize) for size in run_data.sizes] == [False, True]


def test_the_command_for_a_mixed_cell_names_its_distribution(run_data):
    """It measures the same cell again."""
    from bench.config.validation import apply_changes, parse_scenario
    from bench.config.yaml_document import Document

    details = next(one for one in describe_cells(run_data).values() if "mean" in one.point)
    words = shlex.split(details.command)
    changes = [after for word, after in pairwise(words) if word == "--set"]
    base = Document("", {"name": "x", "systems": ["a/b"], "grid": {"message_size": ["1 kB"]}})
    (cell,) = parse_scenario(apply_changes(base, changes)).cells()
    assert (cell.sizes, cell.message_bytes) == (CHOICE.sizes, int(CHOICE))


def test_the_csv_names_the_distribution(run_data):
    """It has its own column, which is empty if all messages have one size."""
    text = (run_data.folder / "cells.csv").read_text()
    assert "sizes" in text.splitlines()[0].split(",")
    assert "90 % 100 B, 10 % 10 kB" in text


def test_cells_of_one_grid_have_different_names():
    """Even nearly equal sizes have different names, since files are named after cells."""
    sizes = Sizes(choice=((100, 1.0),))
    names = [Cell("a", "b", 1000, 0.0).name, Cell("a", "b", 1001, 0.0).name, Cell("a", "b", 1000, 0.0, sizes).name]
    assert len(set(names)) == 3
