"""A cell of a run is deployed again, and its busy Python processes are sampled under load."""

import pytest
from sample_runs import open_run_folder

from bench.config.scenario import Grid, LoadSettings, Scenario
from bench.model.message_sizes import MessageSize
from bench.runner.profile import ProfiledCell, profile_cell
from bench.runner.progress import TrialStarted
from bench.runner.run import RunOptions
from bench.storage.journal import read_journal
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
def py_spy(tmp_path):
    """Return a stand-in for py-spy, which writes its process into the file that its last argument names."""
    path = tmp_path / "py-spy"
    path.write_text('#!/bin/sh\nfor out in "$@"; do :; done\necho "$3" > "$out"\n')
    path.chmod(0o755)
    return path


def test_a_flame_graph_is_drawn_of_the_process_that_works(tmp_path, py_spy):
    """It lies in the run folder, which has no new trial, and no data of the cell."""
    with open_run_folder(tmp_path / "run", SCENARIO):
        pass
    (cell,) = SCENARIO.cells()
    seen = []
    options = RunOptions("bench explain", tmp_path / "cache", tmp_path / "children")
    profiled = ProfiledCell(cell, RATE, settle_s=1.0, profile_s=2.0)
    (graph,) = profile_cell(tmp_path / "run", profiled, py_spy, seen.append, options)
    assert graph.path is not None, graph.problem
    assert graph.path.parent == tmp_path / "run" / "profiles" / cell.name
    assert graph.path.read_text().strip() == str(graph.process.pid)
    assert graph.process.cpu_share > 0.02
    assert [event.planned.rate for event in seen if isinstance(event, TrialStarted)][-1] == RATE
    assert not (graph.path.parent / "data").exists()
    assert list(read_journal(tmp_path / "run")) == []
