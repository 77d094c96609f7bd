"""The PDF of policies on running systems."""

import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")
pytest.importorskip("typst", reason="the extra `report` is not installed")

from msgspec.structs import replace
from sample_policies import QUICK_ONE, SCENARIO, make_policy_run

from bench.cli.report import report
from bench.errors import UsageError
from reports.formats import policy_pdf

EVIL = '</title> #panic("x") $\\frac{1}{$ {{ 7 * 7 }}'


def count_pages(path: Path) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", path.read_bytes()))


def test_the_pdf_has_a_page_for_each_system_and_the_changes(tmp_path: Path) -> None:
    """After the title page; text of a run is only text."""
    folder = make_policy_run(tmp_path / "run", replace(SCENARIO, title=EVIL))
    (path,) = policy_pdf.write(folder)
    assert count_pages(path) >= 3
    assert b"#panic" in path.read_bytes()


def test_a_run_without_an_interval_has_a_pdf(tmp_path: Path) -> None:
    """It says that the run is not finished, or why there is nothing."""
    assert count_pages(policy_pdf.write(make_policy_run(tmp_path / "none", policies=[]))[0]) >= 2
    end = replace(QUICK_ONE.run.end, what="unsupported", reason="its workers are fixed")
    fixed = replace(QUICK_ONE, run=replace(QUICK_ONE.run, decisions=[], end=end), measurement=None)
    assert count_pages(policy_pdf.write(make_policy_run(tmp_path / "fixed", policies=[fixed]))[0]) >= 2


def test_a_format_of_another_kind_of_run_names_the_right_ones(tmp_path: Path) -> None:
    """The page and the PDF are written where no format is given."""
    folder = make_policy_run(tmp_path / "run")
    with pytest.raises(UsageError, match=r"--format pdf: it is for runs of kind map; .* policies, policies-pdf"):
        report([folder], formats="pdf")
    report([folder], formats="")
    assert {each.name for each in folder.glob("report.*")} == {"report.html", "report.pdf"}
