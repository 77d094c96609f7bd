"""A site's cluster is waited for while task slots are taken, and not where it has none before a job asks for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.config.site import Site
from bench.errors import PluginError
from bench.plugins.environment import RunEnvironment
from bench.system.supervisor import Supervisor
from frameworks.flink import cluster
from frameworks.flink.cluster import SiteFlinkCluster
from frameworks.flink.site import FlinkSite

OVERVIEW = b'HTTP/1.1 200 OK\r\n\r\n{"slots-total": %d, "slots-available": 0}'


@pytest.fixture
def open_cluster(
    serve: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], SiteFlinkCluster]:
    """Return a function that opens a site's cluster with so many slots, none of which is free; two are needed."""
    monkeypatch.setattr(cluster, "SLOTS_TIMEOUT_S", 0.0)
    (tmp_path / "flink-client").mkdir()  # what a client needs is there
    env = RunEnvironment(Site(), Supervisor(tmp_path / "running", tmp_path / "logs"), tmp_path, tmp_path, cores=2)
    return lambda slots: SiteFlinkCluster(FlinkSite(serve(OVERVIEW % slots), "127.0.0.1:9400"), 2, env)


def test_a_cluster_that_starts_taskmanagers_on_demand_is_not_waited_for(
    open_cluster: Callable[[int], SiteFlinkCluster],
) -> None:
    """It has no slots before a job asks for them."""
    assert open_cluster(0).alive()


def test_a_cluster_whose_slots_are_taken_is_told(open_cluster: Callable[[int], SiteFlinkCluster]) -> None:
    """The error says how many are free."""
    with pytest.raises(PluginError, match="0 task slots free, and 2 are needed"):
        open_cluster(4)
