"""Locust as a load, seen from the harness: headless processes that outlive cells and take their orders over a channel.

One worker is one Locust process. Several are Locust's own master and workers: the master has the channel, and its custom messages
carry orders to the workers and accounts back; each worker sends its share of the one schedule as a producer of its own.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from bench.config.address import Address
from bench.errors import NotReadyError, ProcessDiedError
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.services.ports import LOOPBACK, free_ports
from bench.system.ipc import Failure, Ready
from bench.system.supervisor import Child
from bench.workload.load_spec import Cancel, LoadSpec, SendProgress, Together

READY_SECONDS = 60.0
"""For Locust to start (about 2 s) and a sender to open."""
AGAIN_SECONDS = 1.0
"""Before a worker waits for the next run."""
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_TOP_PAD_": str(2**24)}
"""For glibc: keep the memory of large messages and use it again, instead of fetching fresh pages for each."""


class Opening(Struct, frozen=True, tag="opening"):
    """Open the sender of an endpoint; `Ready` follows."""

    endpoint: Endpoint


class Closing(Struct, frozen=True, tag="closing"):
    """Close the sender, giving up an order that is under way; `Ready` follows."""


Command = Opening | Closing | LoadSpec | Cancel
Reply = SendProgress | Ready | Failure


class LoadGenerator:
    """The senders of one cell, in the run's Locust processes."""

    def __init__(self) -> None:
        self._swarm: LocustProcess | None = None

    def open(self, endpoint: Endpoint, env: RunEnvironment) -> None:
        self._swarm = env.cached_resource("swarm", lambda: LocustProcess(env))
        self._swarm.send(Opening(endpoint))
        self._swarm.wait_ready(READY_SECONDS)

    def start(self, spec: LoadSpec) -> None:
        self._standing.send(spec)

    def cancel(self) -> None:
        with contextlib.suppress(ProcessDiedError):  # `ask` tells of it
            self._standing.send(Cancel())

    def ask(self) -> list[SendProgress]:
        return self._standing.sent()

    def close(self) -> None:
        swarm, self._swarm = self._swarm, None
        if swarm is not None and swarm.alive():
            swarm.dismiss()

    @property
    def _standing(self) -> "LocustProcess":
        assert self._swarm is not None, "open comes first"
        return self._swarm


class LocustProcess:
    """A Locust process with one user, or a master and its workers with one each; without `web` nothing of it opens a page."""

    def __init__(self, env: RunEnvironment) -> None:
        elsewhere = env.site.load
        self._members, self._web = env.workers, env.web
        self._workers: list[Child] = []
        self._together = Together(self._members)
        alone = self._members == 1 and elsewhere is None
        self._host, self._port = (
            Address.parse(elsewhere.listen) if elsewhere else (LOOPBACK, 0 if alone else free_ports(1)[0])
        )
        self._alone = alone
        start, environ = env.supervisor.start, MEMORY
        self._child = start(self._command(alone=alone), name="locust", role="load", received=Reply, env=environ)
        if elsewhere is not None:
            env.note(
                f"waiting for {self._members} workers of the load at {elsewhere.listen}: bench worker {elsewhere.listen}"
            )
        elif not alone:
            for number in range(self._members):
                worker = start(self._worker_command(), name=f"locust-worker-{number}", role="load", env=environ)
                self._workers.append(worker)
        if self._web:
            env.note(f"Locust's page: http://{LOOPBACK}:{self._web_port}")

    def send(self, what: Command) -> None:
        """Raises Died when it is gone."""
        if not self._child.inbox.send(what):
            raise self._died()

    def sent(self) -> list[SendProgress]:
        """What it has said of its order since the last call; raises Died once it has said the last."""
        alive, received = self.alive(), self._child.receive()
        if not received and not alive:
            raise self._died()
        told = [one for one in received if isinstance(one, SendProgress)]
        return told if self._alone else [one for one in map(self._together.add, told) if one is not None]

    def wait_ready(self, seconds: float) -> None:
        """Return once all of it has done what it was told; raises Died or NotReady."""
        deadline, ready = time.monotonic() + seconds, 0
        while ready < self._members:
            ready += sum(isinstance(one, Ready) for one in self._child.receive(0.05))
            if not self.alive():
                raise self._died()
            if time.monotonic() > deadline:
                raise NotReadyError(f"Locust was not ready within {seconds:g} s", self._child.log)

    def dismiss(self) -> None:
        """Have it close its senders; a process that does not is ended."""
        try:
            self.send(Closing())
            self.wait_ready(READY_SECONDS)
        except (ProcessDiedError, NotReadyError):
            self.close()

    def alive(self) -> bool:
        return self._child.alive() and all(worker.alive() for worker in self._workers)

    def close(self) -> None:
        self._child.stop()
        for worker in self._workers:
            worker.stop(timeout_s=1.0)

    def _died(self) -> ProcessDiedError:
        return next((worker.exit_error() for worker in self._workers if not worker.alive()), None) or self._child.exit_error()

    def _command(self, *, alone: bool) -> list[str]:
        page = ["--headless"]
        if self._web:
            self._web_port = free_ports(1)[0]
            page = ["--web-host", LOOPBACK, "--web-port", str(self._web_port), "--autostart"]
        count = str(self._members)
        users = ["--users", count, "--spawn-rate", count, "--stop-timeout", "1"]
        master = [] if alone else ["--master", "--master-bind-host", self._host, "--master-bind-port", str(self._port)]
        expected = [] if alone else ["--expect-workers", count, "--expect-workers-max-wait", str(round(READY_SECONDS))]
        return [*_LOCUST, *page, *users, *master, *expected]

    def _worker_command(self) -> list[str]:
        return worker_command(self._host, self._port)


def worker_command(host: str, port: int) -> list[str]:
    """A Locust worker that waits for its master at an address, and ends with it."""
    return [*_LOCUST, "--worker", "--master-host", host, "--master-port", str(port)]


def joined(address: str, say: Callable[[str], None]) -> NoReturn:
    """Be a worker of one run after another, for whose master it waits at host:port; never returns."""
    host, port = Address.parse(address)
    while True:
        say(f"waiting for a run's load at {address}")
        worker = subprocess.Popen(worker_command(host, port), env=os.environ | MEMORY)
        try:
            worker.wait()
        finally:
            worker.terminate()
            worker.wait()
        time.sleep(AGAIN_SECONDS)


_FILE = Path(__file__).with_name("locustfile.py")
_LOCUST = [sys.executable, "-m", "locust", "-f", str(_FILE), "--only-summary", "--loglevel", "WARNING"]
