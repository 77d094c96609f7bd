"""Tables of cells and trials in Parquet."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reports.formats import parquet


def test_tables_have_a_row_for_each_cell_and_each_trial(run: Path) -> None:
    """Columns have the names of cells.json, and each trial has its verdict."""
    cells, trials = (pq.ParquetFile(path).read() for path in parquet.write(run))
    assert (cells.num_rows, trials.num_rows) == (24, 132)
    assert set(trials["verdict"].to_pylist()) == {"sustained", "overloaded"}
    assert cells.schema.field("estimate_hz").type == "double"


def test_a_value_that_does_not_exist_is_null(run: Path) -> None:
    """It is never written as 0."""
    last = pq.ParquetFile(parquet.write(run)[0]).read().to_pylist()[-1]
    assert (last["status"], last["estimate_hz"], last["lost"]) == ("no result yet", None, None)
