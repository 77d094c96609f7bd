"""Rates and intervals as a reader sees them."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_runs import QUICK, make_result, make_run

from bench.model.cell import Cell
from reports.data.labels import format_error, format_reason, list_remarks
from reports.data.run_data import CellData, read_run_data


@pytest.mark.parametrize(
    ("ends", "text"),
    [((97, 103), "±3 %"), ((88, 111), "±12 %"), ((69, 177), "−31/+77 %"), ((100, None), "")],
    ids=["narrow", "about even", "uneven", "bound"],
)
def test_an_interval_is_a_distance_from_the_estimate(ends: tuple[float, float | None], text: str) -> None:
    """The farther end counts, both if they differ much; a bracket is called so."""
    low, high = ends
    result = make_result(Cell("a", "kafka", 100, 0.0), estimate_hz=100.0, low_hz=low, high_hz=high)
    assert format_error(result) == text
    assert format_error(replace(result, interval="bracket")) == ("bracket" if high else "")


@pytest.mark.parametrize(("lent", "remarks"), [(True, 1), (False, 0)])
def test_lent_memory_is_a_remark_on_cells_that_fill_it(tmp_path: Path, lent: bool, remarks: int) -> None:
    """A cell of 100 MB/s and more needs new memory all the time; one of less does not."""
    run_data = read_run_data(make_run(tmp_path / "run", QUICK, unfinished=(), trials=1))
    small, large = Cell("python", "kafka", 1000, 0.0001), Cell("spark", "files", 10**6, 0.0001)
    cells = tuple(CellData(cell, make_result(cell, estimate_hz=338.0), ()) for cell in (small, large))
    record = replace(run_data.record, facts={**run_data.record.facts, "memory_is_lent": lent})
    found = list_remarks(replace(run_data, record=record, cells=cells))
    assert len(found) == remarks
    assert all(remark.startswith("spark/files: The host of this virtual machine lends memory") for remark in found)


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("floor", "lowest rate tried"),
        ("overloaded at 10 /s, the lowest rate tried: backlog grew", "lowest rate tried"),
        ("no rate was sustained within the budget", "nothing was sustained"),
    ],
    ids=["lowest", "bisection", "estimate"],
)
def test_an_upper_bound_says_what_it_rests_on(reason: str, label: str) -> None:
    """A search with an estimate gives a bound below every rate that it tried."""
    bound = make_result(Cell("a", "kafka", 100, 0.0), "upper-bound", high_hz=10.0)
    assert format_reason(replace(bound, reason=reason)) == label
