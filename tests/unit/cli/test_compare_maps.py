"""`bench compare` of maps shows each cell's own rates, and what differs between the runs."""

import json
from pathlib import Path

import pytest
import typer
from msgspec.structs import replace
from sample_runs import QUICK, make_result, make_run, open_run_folder

from bench.cli.compare import compare
from bench.config.scenario import Grid
from bench.model.message_sizes import MessageSize


def print_comparison(first: Path, second: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the printed lines."""
    with pytest.raises(typer.Exit):
        compare(first, second, fail_if="")
    return capsys.readouterr().out.splitlines()


def test_a_mix_is_not_shown_as_a_cell_of_its_mean_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line has the rates of its own cell."""
    for name, size in (("a", MessageSize(200)), ("b", MessageSize.read({"choice": {"100 B": 0.5, "300 B": 0.5}}))):
        scenario = replace(QUICK, systems=("python/kafka",), grid=Grid((size,), QUICK.grid.cpu_cost[:1]))
        with open_run_folder(tmp_path / name, scenario) as store:
            (cell,) = scenario.cells()
            store.save_result(cell, make_result(cell, estimate_hz=500.0 if name == "a" else 700.0))
    lines = [line for line in print_comparison(tmp_path / "a", tmp_path / "b", capsys) if "only in" in line]
    assert len(lines) == 2
    assert all(("500" in line) != ("700" in line) for line in lines)


def test_other_settings_and_machines_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They may explain a difference."""
    first = make_run(tmp_path / "a", QUICK, unfinished=())
    other = replace(QUICK, settings={"spark": {"cores": 1}})
    second = make_run(tmp_path / "b", other, unfinished=())
    path = second / "run.json"
    record = json.loads(path.read_text())
    record["facts"]["cores"] = 64
    path.write_text(json.dumps(record))
    differing = [line for line in print_comparison(first, second, capsys) if line.startswith("differs: ")]
    assert any(line.startswith("differs: settings.spark.cores: left out") for line in differing)
    assert any(line.startswith("differs: cores: ") and line.endswith("→ 64") for line in differing)
