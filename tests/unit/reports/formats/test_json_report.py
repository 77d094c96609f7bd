"""A report for programs."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

import json
from pathlib import Path

import pytest

from reports.formats import html_page, json_report


def test_the_json_agrees_with_the_page(run: Path) -> None:
    """It has a format, a summary, and every cell with its bottleneck as a sentence and its trials."""
    html_page.write(run)
    json_report.write(run)
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert (report["format"], len(report["cells"])) == (1, 24)
    assert report["finding"] in (run / "report.html").read_text(encoding="utf-8")
    measured = next(cell for cell in report["cells"] if cell["status"] == "measured")
    assert measured["limit"]
    assert [trial["number"] for trial in measured["trials_made"]] == list(range(measured["trials"]))
    assert report["cells"][-1]["estimate_hz"] is None
