"""A cluster for the benchmark: a master, a worker and PEs, each a process on loopback."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from frameworks.harmonicio.engine.errors import HarmonicError, UnreachableError
from frameworks.harmonicio.engine.operator_client import OperatorClient

IMAGES = "python:frameworks.harmonicio.engine.benchmark.*"
_READY_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 15.0


class BenchmarkCluster:
    """A running cluster: a client of its master, and the port for connectors."""

    def __init__(self, operator: OperatorClient, data_port: int) -> None:
        self.operator, self.data_port = operator, data_port

    def run(self, c_name: str, image: str, settings: Mapping[str, Any], num: int = 1) -> None:
        """Start PEs of a stream, and wait until they run; raises UnreachableError after a timeout."""
        self.operator.submit({"c_name": c_name, "image": image, "num": num, "settings": dict(settings)})
        self.wait(
            lambda: sum(pe["c_name"] == c_name for pe in self.operator.status()["pes"]) == num, f"{num} PEs of {c_name}"
        )

    def end(self, c_name: str) -> None:
        """Drain and end the PEs of a stream, and wait until they have ended."""
        self.operator.withdraw(c_name, purge=True)
        self.wait(lambda: all(pe["c_name"] != c_name for pe in self.operator.status()["pes"]), f"the end of {c_name}")

    def wait(self, done: Callable[[], object], description: str) -> None:
        """Return once `done` returns a true value; raises UnreachableError after a timeout."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            with contextlib.suppress(HarmonicError):
                if done():
                    return
            if time.monotonic() > deadline:
                raise UnreachableError(f"{description} did not come within {_READY_TIMEOUT_S:g} s")
            time.sleep(0.02)


@contextlib.contextmanager
def run_cluster(folder: Path) -> Iterator[BenchmarkCluster]:
    """Run a cluster for as long as the block lasts; its logs are in the folder."""
    port, data_port, worker_port = _free_port(), _free_port(), _free_port()
    command = [sys.executable, "-m", "frameworks.harmonicio.engine.cli"]
    master = ["master", "--port", str(port), "--data-port", str(data_port), "--state", str(folder / "state")]
    worker = [
        "worker",
        "--port",
        str(worker_port),
        "--master",
        f"127.0.0.1:{port}",
        "--allow",
        IMAGES,
        "--data-ports",
        "0,0",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HARMONICIO_")}
    with (folder / "system.log").open("ab") as log, contextlib.ExitStack() as stack:
        for arguments in (master, worker):
            process = subprocess.Popen(
                [*command, *arguments], stderr=log, stdout=log, env=environment, start_new_session=True
            )
            stack.callback(_stop, process)
        cluster = BenchmarkCluster(OperatorClient("127.0.0.1", port), data_port)
        cluster.wait(lambda: cluster.operator.status()["workers"], "a worker")
        yield cluster


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
