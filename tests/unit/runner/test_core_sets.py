"""Load and system can be kept on cores of their own."""

import os
import sys

import pytest
from scenario_files import read_scenario

from bench.errors import UsageError
from bench.runner.core_sets import core_sets
from bench.system import host_info
from bench.system.supervisor import Supervisor


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text("name: x\nsystems: [python/kafka]\ngrid: {message_size: [1 kB]}\n")
    return lambda *changes: read_scenario(path, changes)


@pytest.mark.skipif(host_info.cores() < 2, reason="this machine has one core")
def test_load_and_framework_are_kept_apart(scenario):
    """The load has the last cores, everything else the others."""
    found = core_sets(scenario("load.cores=1"))
    assert found["load"] == host_info.core_numbers()[-1:]
    assert found["framework"] == found["source"] == host_info.core_numbers()[:-1]


def test_without_a_setting_all_share_all(scenario):
    """No role has cores of its own."""
    assert core_sets(scenario()) == {}


def test_a_load_that_leaves_no_core_is_refused(scenario):
    """The error has the number of cores that there are."""
    with pytest.raises(UsageError, match=r"load\.cores: 1024 of \d+ cores"):
        core_sets(scenario("load.cores=1024"))


def test_a_child_stays_where_its_role_may_run(tmp_path):
    """A child and everything that it starts run on the cores of its role."""
    with Supervisor(tmp_path / "running", tmp_path / "logs") as supervisor:
        supervisor.cores_of = {"load": host_info.core_numbers()[-1:]}
        child = supervisor.start([sys.executable, "-c", "input()"], name="child", role="load", received=int)
        assert os.sched_getaffinity(child.pid) == set(host_info.core_numbers()[-1:])
