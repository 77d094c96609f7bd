"""Masters and workers for the tests: real processes on loopback that can be killed and restarted at the same ports."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil

from bench.services.ports import free_ports
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient

DEADLINE = 60.0
HERE = Path(__file__).parent
PE_ENVIRONMENT = {
    "HDE_NODE_NAME": "img",
    "HDE_NODE_ADDR": "127.0.0.1",
    "HDE_NODE_DATA_PORT": "80",
    "HDE_NODE_PORT": "9001",
    "HDE_MASTER_ADDR": "127.0.0.1",
    "HDE_MASTER_PORT": "8080",
    "HOSTNAME": "0123456789ab",
    "HARMONICIO_FUNCTION": "pe_functions:plain",
}
"""What a worker tells a PE that runs in a container."""


def wait_until(condition, what):
    """Return the condition's value once it is true; fail after the deadline."""
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            found = condition()
        except HarmonicError:
            found = None
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.02)


class LocalCluster:
    """A master and a worker."""

    def __init__(self, folder, host="127.0.0.1"):
        self.folder, self.host = folder, host
        self.port, self.data_port, self.worker_port = (free_port() for _ in range(3))
        self.operator = OperatorClient(host, self.port)
        self.processes = {}
        self.environment = {**os.environ, "PYTHONPATH": str(HERE)}
        self.numbers = folder / "numbers"
        self.numbers.mkdir()

    def start_master(self, *flags):
        command = ["master", "--host", self.host, "--port", str(self.port), "--data-port", str(self.data_port)]
        self._start("master", [*command, "--state", str(self.folder / "state"), *flags])
        wait_until(self.operator.info, "the master")

    def start_worker(self, *flags):
        command = [
            "worker",
            "--host",
            self.host,
            "--port",
            str(self.worker_port),
            "--master",
            f"{self.host}:{self.port}",
        ]
        self._start("worker", [*command, "--data-ports", "0,0", "--allow", "python:pe_functions:*", *flags])
        wait_until(lambda: self.operator.status()["workers"], "the worker")

    def submit(self, name="Record", num=1, stream="s", **more):
        settings = {"folder": str(self.numbers)}
        self.operator.submit(
            {"c_name": stream, "image": f"python:pe_functions:{name}", "num": num, "settings": settings, **more}
        )

    def pes(self):
        return self.operator.status()["pes"]

    def wait_pes(self, count):
        return wait_until(lambda: len(pes := self.pes()) == count and (pes or [True]), f"{count} PEs")

    def pe_pids(self):
        """Return the process ids of the worker's children."""
        return [child.pid for child in psutil.Process(self.processes["worker"].pid).children()]

    def kill(self, role):
        process = self.processes.pop(role)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, role):
        process = self.processes.pop(role)
        process.send_signal(signal.SIGTERM)
        return process.wait(30)

    def processed(self):
        """Return the numbers that the PEs have written, in the order of their files."""
        files = sorted(self.numbers.glob("*.numbers"))
        return np.concatenate(
            [np.zeros(0, dtype="<u8"), *(np.frombuffer(one.read_bytes(), dtype="<u8") for one in files)]
        )

    def log(self):
        return (self.folder / "log").read_text()

    def _start(self, role, command):
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "frameworks.harmonicio.engine.cli", *command]
            self.processes[role] = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)


def free_port():
    return free_ports(1)[0]


def numbered(first, count, size=100):
    """Return messages that begin with their number."""
    numbers = np.arange(first, first + count, dtype="<u8")
    block = np.full((count, size), 46, dtype=np.uint8)
    block[:, :8] = numbers.view(np.uint8).reshape(count, 8)
    whole = block.tobytes()
    return [whole[start : start + size] for start in range(0, len(whole), size)]
