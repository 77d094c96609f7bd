"""The cluster of a run.

The site's, or a master and a worker of the harness's own, as child processes kept between cells.
"""

import shutil
import sys
from functools import partial

from msgspec import Struct

from bench.config.address import Address
from bench.errors import NotReadyError, ProcessDiedError, SiteError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.services.credentials import read_secret
from bench.services.ports import LOOPBACK, free_ports
from bench.system.child import Child
from bench.system.supervisor import Supervisor
from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient
from frameworks.harmonicio.site import HARMONICIO_SITE, HarmonicioSite

IMAGE = "python:frameworks.harmonicio.job:Job"
READY_TIMEOUT_S = 60.0
KEY = "harmonicio"


class Reach(Struct, frozen=True):
    """The addresses of a master, and what proves who we are."""

    host: str
    port: int
    """of the control plane"""
    data_host: str
    data_port: int
    """of connectors"""
    token_file: str | None = None
    """whose first line is the connectors' token"""
    tls: str | None = None
    """folder of certificates"""


class EmbeddedHarmonicioCluster:
    """A cluster of the harness's own; listens on loopback only."""

    listen = (LOOPBACK, 0)
    """host and port to which PEs report"""

    def __init__(self, master: Child, worker: Child, *, port: int, data_port: int) -> None:
        self._master, self._worker = master, worker
        self.reach, self.operator = Reach(LOOPBACK, port, LOOPBACK, data_port), OperatorClient(LOOPBACK, port)

    @classmethod
    def deployed(cls, supervisor: Supervisor, state: str) -> "EmbeddedHarmonicioCluster":
        """Start master and worker, and return once the worker has reported.

        Raises:
            ProcessDiedError: one of them ended.
            NotReadyError: it takes too long.
        """
        port, data_port, worker_port = free_ports(3)
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.cli"]
        listen = ["--port", str(port), "--data-port", str(data_port), "--state", state]
        master = supervisor.start([*command, "master", *listen], name="harmonicio-master", role="framework")
        work = ["--port", str(worker_port), "--master", f"{LOOPBACK}:{port}", "--allow", IMAGE, "--data-ports", "0,0"]
        worker = supervisor.start([*command, "worker", *work], name="harmonicio-worker", role="framework")
        cluster = cls(master, worker, port=port, data_port=data_port)
        worker.wait_ready(cluster._has_worker, READY_TIMEOUT_S)
        return cluster

    def alive(self) -> bool:
        """Return whether both run."""
        return self._master.alive() and self._worker.alive()

    def check(self) -> None:
        """Raise ProcessDiedError when one of the two has ended."""
        for child in (self._master, self._worker):
            if not child.alive():
                raise child.exit_error()

    def not_ready(self, what: str) -> NotReadyError:
        """Return an error to raise, with the worker's log: its PEs write there."""
        return NotReadyError(what, self._worker.log)

    def pe_ended(self, stream: str) -> ProcessDiedError:
        """Return an error to raise; the worker's log has the exit code and what the PE wrote."""
        return self._worker.exit_error(f"a PE of {stream} ended")

    def others(self, _: str) -> list[str]:
        """Return no stream: nobody else knows of this cluster."""
        return []

    def close(self) -> None:
        """End both."""
        self._worker.stop(12)
        self._master.stop()

    def _has_worker(self) -> bool:
        try:
            return bool(self.operator.status()["workers"])
        except HarmonicError:
            return False


class SiteHarmonicioCluster:
    """The site's cluster, which is neither started nor stopped here."""

    def __init__(self, site: HarmonicioSite) -> None:
        read_token(site.connector_token_file)  # where it cannot be read, say so now
        self.reach = Reach(*Address.parse(site.master), *Address.parse(site.data), site.connector_token_file, site.tls)
        self.operator = OperatorClient(self.reach.host, self.reach.port, read_token(site.token_file), tls=site.tls)
        self.listen = Address.parse(site.listen)

    def alive(self) -> bool:
        """Return True: its end is noticed by its endpoints."""
        return True

    def check(self) -> None:
        """Do nothing: a trial that does not end well looks for what of a site has died (bench.runner.trial)."""

    def not_ready(self, what: str) -> SiteError:
        """Return an error to raise; the PEs' logs are on the workers' hosts."""
        return SiteError(f"{what}; the logs of its PEs are on the hosts of its workers")

    def pe_ended(self, stream: str) -> ProcessDiedError:
        """Return an error to raise."""
        return ProcessDiedError(f"a PE of {stream} ended; its log is on the host of its worker")

    def others(self, stream: str) -> list[str]:
        """Return the other streams for which PEs run or are wanted: they would take the CPU that is measured."""
        view = self.operator.status()
        found = [pe["c_name"] for pe in view["pes"]] + [row["c_name"] for row in view["streams"] if row["wanted"]]
        return sorted(set(found) - {stream})

    def close(self) -> None:
        """Do nothing: it belongs to somebody else."""


def read_token(path: str | None) -> str:
    """Return the token in a file, empty for None. Raises SiteError where the file cannot be read or is empty."""
    return read_secret(path) if path else ""


def too_large(cell: Cell) -> str | None:
    """Return why a cell's messages exceed what master and worker accept; None when they do not."""
    most = MasterConfig().message_bytes
    if cell.largest_bytes <= most:
        return None
    return (
        f"HarmonicIO accepts messages of {most} bytes at most (message_bytes); the largest here"
        f" has {cell.largest_bytes}"
    )


def cluster_of(env: RunEnvironment) -> EmbeddedHarmonicioCluster | SiteHarmonicioCluster:
    """Return the cluster of a run."""
    site = HARMONICIO_SITE.read(env.site)
    if site is not None:
        return env.cached_resource(KEY, lambda: SiteHarmonicioCluster(site))
    return env.cached_resource(KEY, partial(_deploy_anew, env))


def _deploy_anew(env: RunEnvironment) -> EmbeddedHarmonicioCluster:
    """Start a cluster that wants nothing: one that died would have its successor start the PEs of its last cell."""
    state = env.data / "harmonicio"
    shutil.rmtree(state, ignore_errors=True)
    return EmbeddedHarmonicioCluster.deployed(env.supervisor, str(state))
