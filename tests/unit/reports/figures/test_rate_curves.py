"""Rates over the message size, and the bounds above them."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from sample_runs import QUICK, make_result

from bench.config.site import Site
from bench.model.cell import Cell
from bench.model.measurement import Bound
from bench.storage.run_folder import RunRecord
from reports.data.run_data import CellData, RunData
from reports.figures.rate_curves import Curves, Line, Point, collect_curves, draw_curves


def test_the_soft_bounds_of_each_source_are_drawn_over_the_sizes() -> None:
    """Each source has one line, however many systems read it; a source without a soft bound has none."""
    sizes, bounds = (10_000, 1_000_000), {"kafka": (Bound("disk", 900.0, hard=False),), "tcp": ()}
    cells = [
        Cell(framework, source, size, 0.0) for framework in ("python", "spark") for source in bounds for size in sizes
    ]
    with_results = tuple(CellData(cell, make_result(cell, soft_bounds=bounds[cell.source]), ()) for cell in cells)
    record = RunRecord(1, QUICK, Site(), {"cores": 2}, "2026-05-04T10:00:00Z")
    curves = collect_curves(RunData(Path(), record, with_results), 0.0)
    assert curves.bounds == (("kafka’s disk", ((10_000, 900.0), (1_000_000, 900.0))),)


@pytest.mark.parametrize("rate", [309.64027464849016, 1.0, 0.1, 123456.789, 1.1e-3])
def test_equal_rates_have_a_range_around_them(rate: float) -> None:
    """The campaign found warnings on the terminal: the rates of two sizes differed by the rounding of the logarithm."""
    lines = (Line("python/kafka", tuple(Point(size, rate, None, None, "↑") for size in (100, 10_000))),)
    ax = Figure().add_axes((0.1, 0.1, 0.8, 0.8))
    draw_curves(ax, Curves(0.0, lines, ()), ["python/kafka"])
    low, high = ax.get_ylim()
    assert low < 0.95 * rate < 1.05 * rate < high
