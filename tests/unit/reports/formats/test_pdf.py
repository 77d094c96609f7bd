"""The PDF of a run can be read anywhere, and text in it is only text."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

import re
import tempfile
from pathlib import Path

import pytest
from sample_runs import make_run

from reports.formats import pdf


def test_hostile_text_is_only_text_in_the_pdf(hostile_run: Path) -> None:
    """Typst neither panics nor evaluates; the document's title is the text as it is."""
    (path,) = pdf.write(hostile_run)
    assert b"#panic" in path.read_bytes()


def test_nothing_of_the_pdf_lies_outside_the_run_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench clean` deletes what a kill leaves of it, and nothing is left otherwise."""
    folder = make_run(tmp_path / "run", trials=2)
    (folder / "data").rmdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    pdf.write(folder)
    assert not (folder / "data").exists()


def test_the_pdf_has_pages_and_its_fonts_within(run: Path) -> None:
    """It can be read on a machine without our fonts."""
    pdf.write(run)
    content = (run / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 3
    assert re.findall(rb"/FontFile[23]", content)
