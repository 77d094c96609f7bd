"""Runs that tests of several formats share."""

from pathlib import Path

import pytest
from sample_runs import make_measurement, make_result, open_run_folder

from bench.config.scenario import Grid, Scenario
from bench.units import Size

EVIL = '</title><script>alert(1)</script> #panic("x") $\\frac{1}{$ {{ 7 * 7 }}'


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    """Return a run in which every text tries to inject code."""
    folder = tmp_path / "run"
    scenario = Scenario(name="evil", title=EVIL, systems=("a/b", "c/$x_"), grid=Grid((Size(100),)))
    with open_run_folder(folder, scenario, command=EVIL, versions={EVIL: EVIL}, revision=[EVIL]) as store:
        for cell in scenario.cells():
            store.add(cell, make_measurement(0, 50.0, 40.0, note=EVIL))
            store.save_result(cell, make_result(cell, "failed", reason=EVIL))
    return folder
