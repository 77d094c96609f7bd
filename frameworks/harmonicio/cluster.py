"""A master and a worker of the harness's own, as child processes; one for a run, kept between cells."""

import sys

from bench.errors import NotReady
from bench.faces import Ground
from bench.process import Child, Supervisor
from bench.scenario import Cell
from bench.services.ports import LOOPBACK, free_ports
from frameworks.harmonicio.config import MasterConfig
from frameworks.harmonicio.errors import HarmonicError
from frameworks.harmonicio.operator import Operator

IMAGE = "python:frameworks.harmonicio.job:Job"
READY_SECONDS = 60.0
KEY = "harmonicio"


class Cluster:
    """Stands until closed; listens on loopback only."""

    def __init__(self, master: Child, worker: Child, *, port: int, data_port: int) -> None:
        self._master, self._worker = master, worker
        self.port, self.data_port, self.operator = port, data_port, Operator(LOOPBACK, port)

    @classmethod
    def standing(cls, supervisor: Supervisor, state: str) -> "Cluster":
        """Start both, and wait until the worker has reported; raises Died or NotReady."""
        port, data_port, worker_port = free_ports(3)
        command = [sys.executable, "-m", "frameworks.harmonicio.cli"]
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

    def not_ready(self, what: str) -> NotReady:
        """An error to raise, with the worker's log: its PEs write there."""
        return NotReady(what, self._worker.log)

    def close(self) -> None:
        self._worker.stop(12)
        self._master.stop()

    def _has_worker(self) -> bool:
        try:
            return bool(self.operator.status()["workers"])
        except HarmonicError:
            return False


def too_large(cell: Cell) -> str | None:
    """Why a cell's messages cannot pass a cluster, whose master and worker are started with what they accept unasked."""
    most = MasterConfig().message_bytes
    if cell.largest_bytes <= most:
        return None
    return f"HarmonicIO accepts messages of {most} bytes at most (message_bytes); the largest here has {cell.largest_bytes}"


def cluster_of(ground: Ground) -> Cluster:
    """The cluster of a run."""
    return ground.kept(KEY, lambda: Cluster.standing(ground.supervisor, str(ground.data / "harmonicio")))
