"""The posterior of a search as a curve beside its trials."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

import pytest
from sample_runs import QUICK, make_measurement, make_result

from bench.analysis.verdict import Verdict
from bench.model.cell import Cell
from bench.model.search_inputs import SearchInputs
from reports.data.run_data import CellData, JudgedTrial
from reports.figures.posterior_curve import compute_posterior_curve

CELL = Cell("spark", "kafka", 10_000, 0.0)


def test_the_posterior_lies_between_the_trials() -> None:
    """The interval is that of the result, on the scale of the trials."""
    trials = (
        JudgedTrial(make_measurement(1, 95.0, 100.0), Verdict("sustained")),
        JudgedTrial(make_measurement(2, 130.0, 100.0), Verdict("overloaded", "backlog grew", 0.23)),
    )
    result = make_result(CELL, estimate_hz=110.0, low_hz=97.0, high_hz=125.0)
    posterior = compute_posterior_curve(CellData(CELL, result, trials), QUICK)
    assert posterior is not None
    assert posterior.interval is not None
    (sustained,), (over,) = posterior.sustained, posterior.overloaded
    assert posterior.interval[0] < (sustained + over) / 2 < posterior.interval[1]


def test_what_other_cells_showed_of_the_noise_counts() -> None:
    """As in the search: with little noise the curve is narrower than with much."""
    trials = tuple(
        JudgedTrial(make_measurement(number, rate, 100.0), Verdict("overloaded", "backlog grew", 1 - 100 / rate))
        for number, rate in enumerate((120.0, 130.0))
    )
    result = make_result(CELL, estimate_hz=100.0, low_hz=90.0, high_hz=110.0)
    widths = []
    for noise in ((0.99, 0.002, 0.002, 0.002, 0.002, 0.002), (0.002, 0.002, 0.002, 0.002, 0.002, 0.99)):
        inputs = SearchInputs(cores=2, budget_s=30.0, noise=noise)
        curve = compute_posterior_curve(CellData(CELL, result, trials, inputs=inputs), QUICK)
        assert curve is not None
        assert curve.interval is not None
        widths.append(curve.interval[1] - curve.interval[0])  # on a scale that ends where the posterior does
    assert widths[0] > widths[1]
