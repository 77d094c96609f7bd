"""The page that compares policies of several runs."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

from msgspec.structs import replace
from sample_policies import QUICK_ONE, SCENARIO, make_policy_run

from bench.cli.report import report
from bench.config.scenario import LoadSettings
from bench.errors import UsageError


def test_the_page_shows_each_policy_of_each_run(tmp_path: Path) -> None:
    """With both figures, the settings that differ, and what one run cannot show."""
    other = replace(SCENARIO, elasticity=replace(SCENARIO.elasticity, most=4), title="<b>")
    runs = [make_policy_run(tmp_path / "a"), make_policy_run(tmp_path / "b", other, [QUICK_ONE])]
    report(runs, out=tmp_path)
    page = (tmp_path / "compare-a-vs-b.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "Run 2 compared with run 1: only in the first run." in page
    assert "elasticity.most: 16 → 4" in page
    assert "differences have no interval" in page


def test_runs_of_different_loads_are_refused(tmp_path: Path) -> None:
    """No page is written."""
    runs = [
        make_policy_run(tmp_path / "a"),
        make_policy_run(tmp_path / "b", replace(SCENARIO, load=LoadSettings(seed=2))),
    ]
    with pytest.raises(UsageError, match="has another load than the other run"):
        report(runs, out=tmp_path)
    assert not list(tmp_path.glob("*.html"))
