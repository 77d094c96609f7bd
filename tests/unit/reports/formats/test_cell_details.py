"""The details of a cell: its latencies, its resource usage, and the command that measures it again."""

import shlex
from itertools import pairwise

import pytest
from msgspec.structs import replace
from sample_runs import MIXED, MIXED_SIZE, make_run

from bench.model.measurement import ClockOffset
from reports.data.run_data import read_run_data
from reports.formats.cell_details import describe_cells


@pytest.fixture(scope="module")
def run_data(tmp_path_factory):
    """Return a run with a cell of one size and a cell of a distribution of sizes."""
    return read_run_data(make_run(tmp_path_factory.mktemp("mixed") / "run", MIXED))


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


def test_a_cell_shows_its_resource_usage_and_its_message_sizes(run_data):
    """Its details list the different sizes beside their mean."""
    details = next(one for one in describe_cells(run_data).values() if "mean" in one.point)
    assert details.resources
    assert any("90 % 100 B, 10 % 10 kB" in sentence for sentence in details.sentences)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "measured", "low_hz": 900.0, "estimate_hz": 1000.0, "high_hz": 1100.0}, "; 50% of it was reached."),
        ({"status": "lower-bound", "low_hz": 1000.0, "estimate_hz": 1000.0, "high_hz": None}, "; at least 50%"),
        ({"status": "upper-bound", "low_hz": None, "estimate_hz": None, "high_hz": 1000.0}, "allows 2 k/s."),
    ],
    ids=["measured", "at least", "at most"],
)
def test_only_a_rate_that_was_sustained_has_reached_a_share_of_theory(run_data, changes, said):
    """An upper bound was too much."""
    first, *rest = run_data.cells
    result = replace(first.result, bound_hz=2000.0, bound="cpu", **changes)
    details = describe_cells(replace(run_data, cells=(replace(first, result=result), *rest)))[first.anchor]
    assert said in next(text for text in details.sentences if text.startswith("Theory"))


def test_the_command_for_a_mixed_cell_names_its_distribution(run_data):
    """It measures the same cell again."""
    from bench.config.validation import apply_changes, parse_scenario
    from bench.config.yaml_document import Document

    details = next(one for one in describe_cells(run_data).values() if "mean" in one.point)
    words = shlex.split(details.command)
    changes = [after for word, after in pairwise(words) if word == "--set"]
    base = Document("", {"name": "x", "systems": ["a/b"], "grid": {"message_size": ["1 kB"]}})
    (cell,) = parse_scenario(apply_changes(base, changes)).cells()
    assert (cell.sizes, cell.message_bytes) == (MIXED_SIZE.sizes, int(MIXED_SIZE))
