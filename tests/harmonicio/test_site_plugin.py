"""A HarmonicIO of the site: cells use it with its tokens, start nothing of their own, and leave nothing behind."""

import json
import logging

import pytest
from processes import free_port, wait_until

from bench.cli import diagnosis
from bench.config.scenario import Grid, LoadSettings, Scenario
from bench.config.site import Site
from bench.errors import PluginError, SiteError
from bench.plugins.environment import RunEnvironment
from bench.plugins.site_preflight import require_site
from bench.runner.cell_plan import plan_cell
from bench.runner.deployment import deployed
from bench.system.supervisor import Supervisor
from bench.units import Size
from frameworks.harmonicio.cluster import IMAGE
from frameworks.harmonicio.engine.operator_client import OperatorClient
from frameworks.harmonicio.site import HarmonicioSite
from producers.files.site import FilesSite
from producers.tcp.site import TcpSite

TOKENS = {role: f"the token of {role}" for role in ("operator", "worker", "pe", "connector")}
HERE = "127.0.0.2"
"""An address of this machine that is not the loopback that everything uses unasked."""
pytestmark = pytest.mark.real


@pytest.fixture
def site(cluster, tmp_path):
    """Return the site of a cluster that asks for tokens."""
    (tmp_path / "tokens.yaml").write_text(json.dumps({"tokens": TOKENS}))
    cluster.operator = OperatorClient(cluster.host, cluster.port, TOKENS["operator"])
    cluster.start_master("--config", str(tmp_path / "tokens.yaml"))
    cluster.start_worker("--config", str(tmp_path / "tokens.yaml"), "--allow", IMAGE)
    for role in ("operator", "connector"):
        (tmp_path / role).write_text(f"{TOKENS[role]}\nanother line\n")
    (tmp_path / "shared").mkdir()
    harmonicio = HarmonicioSite(
        f"127.0.0.1:{cluster.port}",
        f"127.0.0.1:{cluster.data_port}",
        f"{HERE}:{free_port()}",
        token_file=str(tmp_path / "operator"),
        connector_token_file=str(tmp_path / "connector"),
        cores=1,
    )
    tcp = TcpSite(f"{HERE}:{free_port()}")
    return Site(sections={"harmonicio": harmonicio, "files": FilesSite(str(tmp_path / "shared")), "tcp": tcp})


@pytest.fixture
def deploy_on(tmp_path):
    """Has the first messages go through a system on a site; which children of ours that took."""

    def deploy(site, system):
        scenario = Scenario("site", (system,), Grid((Size(1000),)), load=LoadSettings(by="inline"))
        (cell,) = scenario.cells()
        supervisor = Supervisor(tmp_path / "running", tmp_path / "logs")
        with (
            RunEnvironment(site, supervisor, tmp_path / "data", tmp_path, cores=2, note=logging.info) as env,
            deployed(plan_cell(cell, scenario, env.site, env.cores), env),
        ):
            pass
        return {path.stem.rstrip("-0123456789") for path in (tmp_path / "logs").glob("*.log")}

    return deploy


@pytest.mark.parametrize(
    ("systems", "children"),
    [(["harmonicio/stream", "harmonicio/stream"], set()), (["harmonicio/tcp", "harmonicio/files"], {"bridge"})],
    ids=["connector", "bridge"],
)
def test_cells_use_the_sites_cluster(cluster, site, deploy_on, systems, children):
    """One after the other, without a master of their own; their PEs end with them, and the cluster stays."""
    for system in systems:
        assert deploy_on(site, system) == children
        wait_until(lambda: not cluster.pes(), "the end of the PEs")
    assert not list((cluster.folder / "shared").iterdir())
    assert not any(row["wanted"] for row in cluster.operator.status()["streams"])


def test_a_cluster_that_others_use_is_refused(cluster, site, deploy_on):
    """Their PEs would take the CPU that is measured."""
    cluster.submit("Record")
    cluster.wait_pes(1)
    with pytest.raises(PluginError, match="PEs of s are there"):
        deploy_on(site, "harmonicio/stream")


def test_the_doctor_looks_at_the_cluster(cluster, site, tmp_path):
    """Both ports, and tokens that go in the open; a token file that is not there ends a run before it begins."""
    said = [one.what for one in diagnosis.findings(site, tmp_path, tmp_path, tmp_path / "registry")]
    for port in (cluster.port, cluster.data_port):
        assert f"harmonicio at 127.0.0.1:{port} takes connections" in said
    assert any("unencrypted" in one for one in said)
    (tmp_path / "operator").unlink()
    with pytest.raises(SiteError, match=rf"site\.harmonicio\.token_file: {tmp_path}/operator cannot be read"):
        require_site(site)
