"""The table of all cells has the names of cells.json, and leaves empty what does not exist."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

import csv
from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_runs import MIXED, make_result, make_run

from bench.analysis.comparison import claim_text
from bench.model.measurement import Result
from reports.data.run_data import read_run_data
from reports.formats import csv_table


@pytest.fixture(scope="module")
def listed_run(run: Path) -> Path:
    """Return the run with its table."""
    csv_table.write(run)
    return run


def test_the_csv_has_the_names_of_the_results(listed_run: Path) -> None:
    """Each field of cells.json but the searches' own has a column; nested fields have a dot."""
    with (listed_run / "cells.csv").open(encoding="utf-8", newline="") as file:
        columns = csv.DictReader(file).fieldnames or []
    nested = {
        "latency_s": [f"latency_s.{q}" for q in ("p50", "p90", "p99", "max")],
        "cpu_share": ["cpu_share.framework", "cpu_share.source"],
        "objectives": [],
        "noise": [],
        "warm_ups": [],
        "soft_bounds": ["soft_bounds.network", "soft_bounds.disk"],
    }
    wanted = [name for field in Result.__struct_fields__ for name in nested.get(field, [field])]
    assert [name for name in columns if name != "bound_share"] == wanted


def test_the_csv_leaves_empty_what_does_not_exist(listed_run: Path) -> None:
    """The line of a cell that was not measured has no numbers."""
    with (listed_run / "cells.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    last = lines[-1]
    assert (len(lines), last["status"], last["estimate_hz"], last["lost"]) == (24, "no result yet", "", "")


def test_the_csv_names_the_distribution(tmp_path: Path) -> None:
    """It has its own column, which is empty if all messages have one size."""
    (table,) = csv_table.write(make_run(tmp_path / "run", MIXED))
    text = table.read_text()
    assert "sizes" in text.splitlines()[0].split(",")
    assert "90 % 100 B, 10 % 10 kB" in text


def test_bounds_keep_their_sign(run: Path) -> None:
    """The sign is in every column derived from the rate, and in comparisons."""
    run_data = read_run_data(run)
    rows = zip(csv_table.make_rows(run_data), run_data.cells, strict=True)
    bounds = [(row, one.result) for row, one in rows if one.result is not None and one.result.status == "lower-bound"]
    assert bounds
    assert all(row.volume.startswith("≥ ") and claim_text(result).startswith("≥ ") for row, result in bounds)


def test_the_share_of_a_bound_is_that_of_the_rate_shown(run: Path) -> None:
    """As in the page: of a lower bound that is its lower end, and not its estimate."""
    (cell_data, *_) = read_run_data(run).cells
    result = replace(
        make_result(cell_data.cell, "lower-bound"), estimate_hz=180.0, low_hz=150.0, high_hz=None, bound_hz=200.0
    )
    assert csv_table.make_record(replace(cell_data, result=result), (), ())["bound_share"] == 0.75
