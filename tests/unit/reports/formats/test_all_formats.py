"""Each report can be made of any run folder, and again with the same bytes."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sample_runs import SMALL, make_measurement, make_run

from bench.config.scenario import Grid
from bench.model.measurement import Series
from bench.storage.run_folder import RunFolder
from reports.formats import csv_table, html_page, images, json_report, pdf

REPORTS = [(html_page, "report.html"), (pdf, "report.pdf"), (json_report, "report.json"), (csv_table, "cells.csv")]
TWO_SYSTEMS = replace(SMALL, grid=Grid(SMALL.grid.message_size[:1]))
"""Enough for every figure, the map of winners too."""


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with every kind of figure."""
    return make_run(tmp_path_factory.mktemp("results") / "run", SMALL)


@pytest.mark.parametrize(("report", "name"), REPORTS, ids=["html", "pdf", "json", "csv"])
def test_the_same_run_gives_the_same_bytes(small_run: Path, report: Any, name: str) -> None:
    """A report names the file that it wrote, and nothing in it comes from the clock or from chance."""
    assert report.write(small_run) == [small_run / name]
    first = (small_run / name).read_bytes()
    assert first
    report.write(small_run)
    assert (small_run / name).read_bytes() == first


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_trials_without_any_result_make_a_report(tmp_path: Path, report: Any) -> None:
    """A run that was killed in its first cell has a report."""
    run = make_run(tmp_path / "run", TWO_SYSTEMS, unfinished=TWO_SYSTEMS.cells())
    RunFolder(run).add(TWO_SYSTEMS.cells()[0], make_measurement(0, 50.0, 40.0))
    assert all(path.exists() for path in report.write(run))


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_a_trial_without_counters_makes_a_report(tmp_path: Path, report: Any) -> None:
    """A load that died at once leaves an empty series."""
    run = make_run(tmp_path / "run", TWO_SYSTEMS, unfinished=TWO_SYSTEMS.cells())
    dead = make_measurement(0, 50.0, 40.0, ended="load died", offered=0, series=Series())
    RunFolder(run).add(TWO_SYSTEMS.cells()[0], dead)
    assert all(path.exists() for path in report.write(run))
