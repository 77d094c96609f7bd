"""Latency is drawn from trials that say something about the system."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

import pytest
from sample_runs import make_measurement, make_result

from bench.analysis.verdict import Verdict
from bench.model.cell import Cell
from reports.data.run_data import CellData, JudgedTrial, read_run_data
from reports.figures.latency import collect_latency_curves, list_latency_trials


def test_latencies_of_an_invalid_trial_are_not_drawn(run: Path) -> None:
    """An invalid trial says nothing about the system; an overloaded one is marked."""
    run_data = read_run_data(run)
    trials = tuple(
        JudgedTrial(make_measurement(n, 95.0, 95.0, "latency"), Verdict(word, ""))
        for n, word in enumerate(("invalid", "overloaded"))
    )
    cell = Cell("spark", "kafka", 1000, 0.01)
    cell_data = CellData(cell, make_result(cell), trials)
    assert list_latency_trials(cell_data) == [trials[1]]
    (curve,) = collect_latency_curves(run_data, cell_data)
    assert "overloaded" in curve.title
