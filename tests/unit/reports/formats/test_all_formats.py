"""Each report can be made of any run folder, and again with the same bytes."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from pathlib import Path
from typing import Any

import pytest
from sample_runs import QUICK, make_measurement, make_run

from bench.model.measurement import Series
from bench.storage.run_folder import RunFolder
from reports.formats import csv_table, html_page, images, json_report, pdf

REPORTS = [(html_page, "report.html"), (pdf, "report.pdf"), (json_report, "report.json"), (csv_table, "cells.csv")]


@pytest.mark.parametrize(("report", "name"), REPORTS, ids=["html", "pdf", "json", "csv"])
def test_the_same_run_gives_the_same_bytes(run: Path, report: Any, name: str) -> None:
    """A report names the file that it wrote, and nothing in it comes from the clock or from chance."""
    assert report.write(run) == [run / name]
    first = (run / name).read_bytes()
    assert first
    report.write(run)
    assert (run / name).read_bytes() == first


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_trials_without_any_result_make_a_report(tmp_path: Path, report: Any) -> None:
    """A run that was killed in its first cell has a report."""
    run = make_run(tmp_path / "run", unfinished=QUICK.cells())
    store = RunFolder(run)
    store.add(QUICK.cells()[0], make_measurement(0, 50.0, 40.0))
    assert all(path.exists() for path in report.write(run))


@pytest.mark.parametrize(
    "report", [html_page, pdf, images, json_report, csv_table], ids=["html", "pdf", "png", "json", "csv"]
)
def test_a_trial_without_counters_makes_a_report(tmp_path: Path, report: Any) -> None:
    """A load that died at once leaves an empty series."""
    run = make_run(tmp_path / "run", unfinished=QUICK.cells())
    RunFolder(run).add(QUICK.cells()[0], make_measurement(0, 50.0, 40.0, ended="load died", offered=0, series=Series()))
    assert all(path.exists() for path in report.write(run))
