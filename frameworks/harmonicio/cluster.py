"""The cluster of a run: the site's, or a master and a worker of the harness's own, as child processes kept between cells."""

import sys

from msgspec import Struct

from bench.config.site import HarmonicioSite, host_and_port
from bench.errors import NotReadyError, SiteError
from bench.model.cell import Cell
from bench.plugins.protocols import RunEnvironment
from bench.services.credentials import secret_in
from bench.services.ports import LOOPBACK, free_ports
from bench.system.supervisor import Child, Supervisor
from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient

IMAGE = "python:frameworks.harmonicio.job:Job"
READY_SECONDS = 60.0
KEY = "harmonicio"


class Reach(Struct, frozen=True):
    """Where a master is reached, and what it is shown."""

    host: str
    port: int
    """of the control plane"""
    data_host: str
    data_port: int
    """of connectors"""
    token: str = ""
    """of connectors"""
    tls: str | None = None
    """folder of certificates"""


class Cluster:
    """Of the harness's own; stands until closed; listens on loopback only."""

    listen = (LOOPBACK, 0)
    """where PEs tell what they have done"""

    def __init__(self, master: Child, worker: Child, *, port: int, data_port: int) -> None:
        self._master, self._worker = master, worker
        self.reach, self.operator = Reach(LOOPBACK, port, LOOPBACK, data_port), OperatorClient(LOOPBACK, port)

    @classmethod
    def deployed(cls, supervisor: Supervisor, state: str) -> "Cluster":
        """Start both, and wait until the worker has reported; raises Died or NotReady."""
        port, data_port, worker_port = free_ports(3)
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.cli"]
        listen = ["--port", str(port), "--data-port", str(data_port), "--state", state]
        master = supervisor.start([*command, "master", *listen], name="harmonicio-master", role="framework")
        work = ["--port", str(worker_port), "--master", f"{LOOPBACK}:{port}", "--allow", IMAGE, "--data-ports", "0,0"]
        worker = supervisor.start([*command, "worker", *work], name="harmonicio-worker", role="framework")
        cluster = cls(master, worker, port=port, data_port=data_port)
        worker.wait_ready(cluster._has_worker, READY_SECONDS)
        return cluster

    def alive(self) -> bool:
        return self._master.alive() and self._worker.alive()

    def check(self) -> None:
        """Raise Died when one of the two has ended."""
        for child in (self._master, self._worker):
            if not child.alive():
                raise child.died()

    def not_ready(self, what: str) -> NotReadyError:
        """An error to raise, with the worker's log: its PEs write there."""
        return NotReadyError(what, self._worker.log)

    def others(self, _: str) -> list[str]:
        """Nobody else knows of it."""
        return []

    def close(self) -> None:
        self._worker.stop(12)
        self._master.stop()

    def _has_worker(self) -> bool:
        try:
            return bool(self.operator.status()["workers"])
        except HarmonicError:
            return False


class SitesCluster:
    """The site's, which is neither started nor stopped here."""

    def __init__(self, site: HarmonicioSite) -> None:
        told = {of: secret_in(path) if path is not None else "" for of, path in _token_files(site).items()}
        self.reach = Reach(*host_and_port(site.master), *host_and_port(site.data), told["connector"], site.tls)
        self.operator = OperatorClient(self.reach.host, self.reach.port, told["operator"], tls=site.tls)
        self.listen = host_and_port(site.listen)

    def alive(self) -> bool:
        return True

    def check(self) -> None:
        """What of a site has died is looked for where a trial does not end well (bench.runner.trial)."""

    def not_ready(self, what: str) -> SiteError:
        """An error to raise; the PEs' logs are on the workers' hosts."""
        return SiteError(f"{what}; the logs of its PEs are on the hosts of its workers")

    def others(self, stream: str) -> list[str]:
        """Streams but this one for which PEs run or are wanted: they would take the CPU that is measured."""
        view = self.operator.status()
        found = [pe["c_name"] for pe in view["pes"]] + [row["c_name"] for row in view["streams"] if row["wanted"]]
        return sorted(set(found) - {stream})

    def close(self) -> None:
        """It is somebody else's."""


def _token_files(site: HarmonicioSite) -> dict[str, str | None]:
    return {"operator": site.token_file, "connector": site.connector_token_file}


def too_large(cell: Cell) -> str | None:
    """Why a cell's messages cannot pass a cluster, whose master and worker are started with what they accept unasked."""
    most = MasterConfig().message_bytes
    if cell.largest_bytes <= most:
        return None
    return f"HarmonicIO accepts messages of {most} bytes at most (message_bytes); the largest here has {cell.largest_bytes}"


def cluster_of(env: RunEnvironment) -> Cluster | SitesCluster:
    """The cluster of a run."""
    site = env.site.harmonicio
    if site is not None:
        return env.cached_resource(KEY, lambda: SitesCluster(site))
    return env.cached_resource(KEY, lambda: Cluster.deployed(env.supervisor, str(env.data / "harmonicio")))
