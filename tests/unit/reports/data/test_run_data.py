"""Reports are made from a run folder alone."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_runs import MIXED, QUICK, make_result, make_run, open_run_folder

from reports.data.run_data import MeanSize, read_run_data
from reports.data.winners import summarize_run
from reports.formats import csv_table


def test_a_bracket_is_shown_as_one_and_decides_nothing(tmp_path: Path) -> None:
    """The scenario of an older run tells that its strategy gives no confidence intervals."""
    scenario = replace(QUICK, search=replace(QUICK.search, strategy="bisection"))
    run = tmp_path / "run"
    with open_run_folder(run, scenario) as store:
        for cell in scenario.cells():
            store.save_result(cell, replace(make_result(cell), interval=None, precision_reached=None))
    data = read_run_data(run)
    assert {row.interval.split()[0] for row in csv_table.make_rows(data)} == {"bracket"}
    assert summarize_run(data).startswith(
        "No system is certainly the fastest at any of 6 points of the map: 6 are open (brackets are no confidence "
        "intervals)."
    )


def test_a_map_marks_the_size_that_is_a_mean(tmp_path: Path) -> None:
    """Other sizes have no mark."""
    run_data = read_run_data(make_run(tmp_path / "run", MIXED))
    assert [isinstance(size, MeanSize) for size in run_data.sizes] == [False, True]


def test_the_cpu_share_of_a_service_on_another_host_is_unknown_in_old_runs(tmp_path: Path) -> None:
    """Their cells.json has 0.0; the table leaves it empty."""
    folder = make_run(tmp_path / "run", unfinished=())
    record = json.loads((folder / "run.json").read_text())
    record["site"]["sections"]["kafka"] = {"bootstrap": "h:9092"}
    (folder / "run.json").write_text(json.dumps(record))
    results = [cell_data.result for cell_data in read_run_data(folder).of_system("spark/kafka")]
    assert {result.cpu_share["source"] for result in results if result and result.cpu_share} == {None}
