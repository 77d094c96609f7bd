"""Each kind of map shows a value only where it is known."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from pathlib import Path

import pytest
from sample_runs import QUICK, make_measurement, make_result

from bench.analysis.verdict import Verdict
from bench.config.site import Site
from bench.model.cell import Cell
from bench.storage.run_folder import RunRecord
from reports.data.run_data import CellData, JudgedTrial, RunData
from reports.figures.heatmap_kinds import describe_cpu

DEAR = Cell("spark", "kafka", 10_000, 0.01)
RECORD = RunRecord(1, QUICK, Site(), {"cores": 2}, "2026-05-04T10:00:00Z")


def test_more_useful_cpu_than_was_used_is_impossible() -> None:
    """It is called impossible and drawn without a colour."""
    trial = make_measurement(5, 180.0, 200.0, "confirm", cpu={"framework": 10.0, "source": 0.0, "seconds": 10.0})
    cell_data = CellData(DEAR, make_result(DEAR, confirmed_hz=180.0), (JudgedTrial(trial, Verdict("sustained")),))
    value, claim, _ = describe_cpu(RunData(Path(), RECORD, ()), cell_data)
    assert (value, claim) == (None, "impossible")
