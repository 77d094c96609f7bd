"""A cell of a run is deployed again, and its busy Python processes are sampled under load."""

import pytest
from sample_runs import open_run_folder

from bench.config.scenario import Grid, LoadSettings, Scenario
from bench.model.message_sizes import MessageSize
from bench.runner import profile
from bench.runner.profile import ProfiledCell, profile_cell
from bench.runner.progress import TrialStarted
from bench.runner.run import RunOptions
from bench.storage.journal import read_journal
from bench.telemetry import profilers
from bench.units import Seconds

SCENARIO = Scenario(
    "profiled",
    ("python/files",),
    Grid((MessageSize(1000),), (Seconds(0.002),)),
    load=LoadSettings(by="inline"),
    settings={"python": {"processes": 1}},
)
RATE = 200.0


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put a stand-in for py-spy in its place, which writes its process into its last argument; shorten the trial."""
    path = tmp_path / "py-spy"
    path.write_text('#!/bin/sh\nfor out in "$@"; do :; done\necho "$3" > "$out"\n')
    path.chmod(0o755)
    for module in (profile, profilers):
        monkeypatch.setattr(module, "require_py_spy", lambda: path)
    monkeypatch.setattr(profile, "PROFILE_S", 2.0)
    monkeypatch.setattr(profile, "SETTLE_S", 1.0)


@pytest.mark.usefixtures("stand_in")
def test_a_flame_graph_is_drawn_of_the_process_that_works(tmp_path):
    """It lies in the run folder, which has no new trial, and no data of the cell."""
    with open_run_folder(tmp_path / "run", SCENARIO):
        pass
    (cell,) = SCENARIO.cells()
    seen = []
    options = RunOptions("bench explain", tmp_path / "cache", tmp_path / "children")
    (graph,) = profile_cell(tmp_path / "run", ProfiledCell(cell, RATE), seen.append, options)
    assert graph.path is not None, graph.problem
    assert graph.path.parent == tmp_path / "run" / "profiles" / cell.name
    assert graph.path.read_text().strip() == str(graph.process.pid)
    assert graph.process.cpu_share > 0.02
    assert [event.planned.rate for event in seen if isinstance(event, TrialStarted)][-1] == RATE
    assert not (graph.path.parent / "data").exists()
    assert list(read_journal(tmp_path / "run")) == []
