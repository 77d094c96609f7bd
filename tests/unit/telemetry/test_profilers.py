"""Busy processes are found by their CPU time, and what a profiler says when it fails is one clear line."""

import os
import sys
import time
from pathlib import Path

import pytest

from bench.errors import HarnessError, UsageError
from bench.system.supervisor import Supervisor
from bench.telemetry.profilers import REFUSED, BusyProcess, CpuUse, FlameGraph, Profilers, require_one, require_py_spy

PROCESS = BusyProcess("bridge-0-1", 1, "python", 0.5)
DEADLINE_S = 60.0


@pytest.fixture
def supervisor(tmp_path):
    supervisor = Supervisor(tmp_path / "running", tmp_path / "logs")
    yield supervisor
    supervisor.close()


@pytest.fixture
def py_spy(tmp_path):
    """Make a stand-in for py-spy of a shell script; its output file is its last argument."""

    def make(script):
        path = tmp_path / "py-spy"
        path.write_text(f'#!/bin/sh\nfor out in "$@"; do :; done\n{script}\n')
        path.chmod(0o755)
        return path

    return make


def test_a_process_that_works_is_busy(supervisor):
    """Its name is that of the child, and one that sleeps is not among them."""
    burn = "import time\nwhile True: pass"
    children = [
        supervisor.start([sys.executable, "-c", code], name=name, role="framework")
        for name, code in (("burner", burn), ("sleeper", "import time; time.sleep(600)"))
    ]
    use, deadline = CpuUse(children), time.monotonic() + DEADLINE_S
    while not (found := use.busy(children)) or found[0].name != f"burner-{children[0].pid}":
        assert time.monotonic() < deadline, found
        os.sched_yield()
    assert found[0].runtime == "python"


def test_a_flame_graph_is_the_file_of_a_process(supervisor, py_spy, tmp_path):
    """It lies in the folder, and bears the name of the process."""
    running = Profilers(supervisor, tmp_path, py_spy('echo graph > "$out"'))
    running.start([PROCESS, BusyProcess("worker-2", 2, "other", 0.9)], 1.0)
    assert running.finish() == [FlameGraph(PROCESS, tmp_path / "bridge-0-1.svg")]
    assert (tmp_path / "bridge-0-1.svg").read_text() == "graph\n"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'Error: Permission denied (os error 13)'; exit 1", REFUSED),
        ("echo 'Operation not permitted (os error 1)'; exit 1", REFUSED),
        ("echo 'no such process'; exit 1", "py-spy-1 ended with exit code 1: no such process"),
        ("exit 0", "py-spy-1 ended with exit code 0: it said nothing"),
    ],
    ids=["denied", "not permitted", "another error", "no file"],
)
def test_a_profiler_that_fails_says_why(supervisor, py_spy, tmp_path, script, problem):
    """Nothing is raised: others may have succeeded."""
    running = Profilers(supervisor, tmp_path, py_spy(script))
    running.start([PROCESS], 1.0)
    assert running.finish() == [FlameGraph(PROCESS, None, problem)]


def test_a_profiler_that_does_not_end_is_stopped(supervisor, py_spy, tmp_path):
    """At its deadline."""
    running = Profilers(supervisor, tmp_path, py_spy("exec sleep 600"), margin_s=0.2)
    running.start([PROCESS], 0.0)
    (graph,) = running.finish()
    assert graph.path is None
    assert graph.problem.startswith("py-spy-1 did not end in time")
    assert supervisor.children == ()


def test_without_any_flame_graph_the_first_reason_is_raised():
    """One is enough."""
    good, bad = FlameGraph(PROCESS, Path("x.svg")), FlameGraph(PROCESS, None, "refused")
    require_one([bad, good])
    with pytest.raises(HarnessError, match="refused"):
        require_one([bad])
    with pytest.raises(HarnessError, match="no process of the cell"):
        require_one([])


def test_py_spy_is_found_beside_python_or_on_the_path(py_spy, tmp_path):
    """The environment's own comes first."""
    found = py_spy("exit 0")
    assert require_py_spy(str(tmp_path / "python"), search="") == found
    assert require_py_spy("/nowhere/python", search=str(tmp_path)) == found


def test_a_missing_py_spy_is_told_with_what_to_do(tmp_path):
    """It is an extra."""
    with pytest.raises(UsageError, match=r'pip install "stream-bench\[profile\]"'):
        require_py_spy("/nowhere/python", search=str(tmp_path))
