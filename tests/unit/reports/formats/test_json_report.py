"""A report for programs."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

import json
from pathlib import Path

import pytest


def test_the_json_agrees_with_the_page(reported_run: Path) -> None:
    """It has a format, a summary, and every cell with its bottleneck as a sentence and its trials."""
    report = json.loads((reported_run / "report.json").read_text(encoding="utf-8"))
    assert (report["format"], len(report["cells"])) == (1, 24)
    assert report["finding"] in (reported_run / "report.html").read_text(encoding="utf-8")
    measured = next(cell for cell in report["cells"] if cell["status"] == "measured")
    assert measured["limit"]
    assert [trial["number"] for trial in measured["trials_made"]] == list(range(measured["trials"]))
    assert report["cells"][-1]["estimate_hz"] is None
