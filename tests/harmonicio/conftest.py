"""Fixtures of HarmonicIO's tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside it, and for what the PEs run

from processes import LocalCluster

from frameworks.harmonicio.engine.master.journal import Journal


@pytest.fixture
def cluster(tmp_path):
    """A cluster of which nothing runs yet; whatever a test starts is stopped afterwards."""
    cluster = LocalCluster(tmp_path)
    yield cluster
    for role in ("worker", "master"):
        if role in cluster.processes:
            cluster.stop(role)


@pytest.fixture
def running_cluster(cluster):
    """A cluster whose master and worker run."""
    cluster.start_master()
    cluster.start_worker()
    return cluster


@pytest.fixture
def journal(tmp_path):
    """Opens journals in one folder; all are closed afterwards."""
    opened = []

    def make(**options):
        opened.append(Journal(tmp_path / "journal", sync=False, **options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
