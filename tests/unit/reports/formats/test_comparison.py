"""The page that compares runs."""

import pytest

pytest.importorskip("matplotlib", reason="the extra `report` is not installed")

import json
import re
import shutil
from pathlib import Path

import pytest
from msgspec import structs
from sample_runs import make_run

from bench.system.machine_speed import MachineSpeed
from reports.data.run_data import read_run_data
from reports.formats import comparison


def test_runs_are_compared_cell_by_cell(run: Path, tmp_path: Path) -> None:
    """The page has a row for each cell with each run's rate, its interval and its ratio to the first run."""
    other = make_run(tmp_path / "other", unfinished=())
    text = comparison.write([run, other], tmp_path).read_text(encoding="utf-8")
    assert text.count("<tr><td>") == 24
    assert "x1.00 [" in text
    assert "other is faster in 0 cells, slower in 0" in text


def test_runs_on_a_machine_of_another_speed_say_so(run: Path) -> None:
    """The sentence has the ratio for each run but the first; there is none where a run has no speed."""
    first = read_run_data(run)
    fast, slow = (structs.replace(first, speeds=(MachineSpeed(cpu, 10.0),)) for cpu in (100.0, 85.0))
    (sentence,) = comparison.summarize_speeds([fast, slow, fast])
    assert "CPU 0.85, 1.00; memory bandwidth 1.00, 1.00" in sentence
    assert comparison.summarize_speeds([fast, first]) == []


def test_a_faster_run_is_called_faster(run: Path, tmp_path: Path) -> None:
    """The page shows the word of bench.analysis.comparison and the ratio."""
    cells = json.loads((run / "cells.json").read_text())
    for cell in cells["cells"]:
        for rate in ("estimate_hz", "low_hz", "high_hz"):
            cell[rate] = cell[rate] and 2 * cell[rate]
    other = tmp_path / "other"
    shutil.copytree(run, other)
    (other / "cells.json").write_text(json.dumps(cells))
    text = comparison.write([run, other], tmp_path).read_text(encoding="utf-8")
    assert "x2.00 [" in text
    assert re.search(r"other is faster in 1\d cells, slower in 0", text)


def test_the_spread_of_repeated_cells_is_compared_with_their_intervals(run: Path, tmp_path: Path) -> None:
    """With three runs or more there is a forest plot for each measured cell, and a sentence about the spread."""
    folders = [run, *(make_run(tmp_path / name, unfinished=()) for name in ("second", "third"))]
    two, three = (comparison.write(folders[:many], tmp_path / str(many)).read_text(encoding="utf-8") for many in (2, 3))
    assert "Repeated cells" not in two
    assert "3 runs: estimates spread by 0.0 %" in three
    assert "narrower than promised" in three  # the same figures three times
    used, defined = (set(re.findall(pattern, three)) for pattern in (r'<use href="#([^"]+)"', r'id="([^"]+)"'))
    assert used  # the estimates are dots
    assert used <= defined
    assert three.count("the same cell in 3 runs") >= 12
