"""Locust as a load generator, seen from the harness.

Headless processes that outlive cells and take specs over a channel.

One worker is one Locust process. Several are Locust's own master and workers: the master has the channel, and its
custom messages carry specs to the workers and progress back; each worker sends its share of the one schedule as a
producer of its own.
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
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.services.ports import LOOPBACK, free_ports
from bench.system.child import Child
from bench.system.ipc import Failure, Ready
from bench.workload.load_spec import Cancel, LoadSpec, SendProgress, SendProgressSum

READY_TIMEOUT_S = 60.0
"""For Locust to start (about 2 s) and a sender to open."""
REJOIN_INTERVAL_S = 1.0
"""Before a worker waits for the next run."""
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_TOP_PAD_": str(2**24)}
"""For glibc: keep the memory of large messages and use it again, instead of fetching fresh pages for each."""


class Opening(Struct, frozen=True, tag="opening"):
    """Open the sender of an endpoint; `Ready` follows."""

    endpoint: Endpoint


class Closing(Struct, frozen=True, tag="closing"):
    """Close the sender, giving up a spec that is under way; `Ready` follows."""


Command = Opening | Closing | LoadSpec | Cancel
Reply = SendProgress | Ready | Failure


class LocustLoadGenerator:
    """The senders of one cell, in the run's Locust processes."""

    def __init__(self, endpoint: Endpoint, env: RunEnvironment, workers: int = 1) -> None:
        self._processes, self._closed = locust_process(env, workers), False
        with contextlib.ExitStack() as opening:
            opening.callback(self.close)
            self._processes.send(Opening(endpoint))
            self._processes.wait_ready(READY_TIMEOUT_S)
            opening.pop_all()  # it stays open

    def start(self, spec: LoadSpec) -> None:
        """Begin to send a spec; return at once.

        Raises:
            ProcessDiedError: Locust is gone.
        """
        self._processes.send(spec)

    def cancel(self) -> None:
        """Give up what is not sent yet."""
        with contextlib.suppress(ProcessDiedError):  # `poll` raises it
            self._processes.send(Cancel())

    def poll(self) -> list[SendProgress]:
        """Return the progress since the last call.

        Raises:
            ProcessDiedError: Locust is gone.
        """
        return self._processes.poll()

    def close(self) -> None:
        """Close the senders."""
        if not self._closed and self._processes.alive():
            self._processes.dismiss()
        self._closed = True


class LocustProcess:
    """A Locust process with one user, or a master and its workers with one each; without `web` it opens no page."""

    def __init__(self, env: RunEnvironment, workers: int) -> None:
        elsewhere = env.site.load
        self._members = workers
        self._workers: list[Child] = []
        self._together = SendProgressSum(self._members)
        alone = self._members == 1 and elsewhere is None
        self._host, self._port = (
            Address.parse(elsewhere.listen) if elsewhere else (LOOPBACK, 0 if alone else free_ports(1)[0])
        )
        self._alone = alone
        web_port = free_ports(1)[0] if env.web else None
        start, environ = env.supervisor.start, MEMORY
        self._child = start(self._command(web_port), name="locust", role="load", received=Reply, env=environ)
        if elsewhere is not None:
            env.note(
                f"waiting for {self._members} workers of the load at {elsewhere.listen}: bench worker"
                f" {elsewhere.listen}"
            )
        elif not alone:
            for number in range(self._members):
                worker = start(self._worker_command(), name=f"locust-worker-{number}", role="load", env=environ)
                self._workers.append(worker)
        if web_port is not None:
            env.note(f"Locust's page: http://{LOOPBACK}:{web_port}")

    def send(self, what: Command) -> None:
        """Send a command. Raises ProcessDiedError when it is gone."""
        if not self._child.inbox.send(what):
            raise self._death_error()

    def poll(self) -> list[SendProgress]:
        """Return its progress since the last call. Raises ProcessDiedError once the last of it was returned."""
        alive, received = self.alive(), self._child.receive()
        if not received and not alive:
            raise self._death_error()
        progress = [one for one in received if isinstance(one, SendProgress)]
        return progress if self._alone else [one for one in map(self._together.add, progress) if one is not None]

    def wait_ready(self, seconds: float) -> None:
        """Wait until every process has executed the last command.

        Raises:
            ProcessDiedError: it is gone.
            NotReadyError: it takes longer than `seconds`.
        """
        deadline, ready = time.monotonic() + seconds, 0
        while ready < self._members:
            ready += sum(isinstance(one, Ready) for one in self._child.receive(0.05))
            if not self.alive():
                raise self._death_error()
            if time.monotonic() > deadline:
                raise NotReadyError(f"Locust was not ready within {seconds:g} s", self._child.log)

    def dismiss(self) -> None:
        """Make it close its senders; end a process that does not."""
        try:
            self.send(Closing())
            self.wait_ready(READY_TIMEOUT_S)
        except (ProcessDiedError, NotReadyError):
            self.close()

    def alive(self) -> bool:
        """Return whether all its processes run."""
        return self._child.alive() and all(worker.alive() for worker in self._workers)

    def close(self) -> None:
        """End its processes."""
        self._child.stop()
        for worker in self._workers:
            worker.stop(timeout_s=1.0)

    def _death_error(self) -> ProcessDiedError:
        return (
            next((worker.exit_error() for worker in self._workers if not worker.alive()), None)
            or self._child.exit_error()
        )

    def _command(self, web_port: int | None) -> list[str]:
        page, alone = ["--headless"], self._alone
        if web_port is not None:
            page = ["--web-host", LOOPBACK, "--web-port", str(web_port), "--autostart"]
        count = str(self._members)
        users = ["--users", count, "--spawn-rate", count, "--stop-timeout", "1"]
        master = [] if alone else ["--master", "--master-bind-host", self._host, "--master-bind-port", str(self._port)]
        expected = (
            [] if alone else ["--expect-workers", count, "--expect-workers-max-wait", str(round(READY_TIMEOUT_S))]
        )
        return [*_LOCUST, *page, *users, *master, *expected]

    def _worker_command(self) -> list[str]:
        return worker_command(self._host, self._port)


def locust_process(env: RunEnvironment, workers: int) -> LocustProcess:
    """Return the run's Locust of so many workers; one that starts now is ready when it has opened its first sender."""
    return env.cached_resource(("locust", workers), lambda: LocustProcess(env, workers))


def worker_command(host: str, port: int) -> list[str]:
    """Return the command of a Locust worker that waits for its master at an address, and ends with it."""
    return [*_LOCUST, "--worker", "--master-host", host, "--master-port", str(port)]


def join_run(address: str, processes: int, say: Callable[[str], None]) -> NoReturn:
    """Be so many workers of one run after another, for whose master they wait at host:port; never returns.

    Where one of them dies, the others go on to the end of the run, which misses it; all of them join the next run.

    Args:
        address: host:port of the run's master.
        processes: number of workers.
        say: called with each line for the user.
    """
    host, port = Address.parse(address)
    while True:
        say(f"waiting for a run's load at {address}")
        workers = [subprocess.Popen(worker_command(host, port), env=os.environ | MEMORY) for _ in range(processes)]
        try:
            for worker in workers:
                worker.wait()
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
        time.sleep(REJOIN_INTERVAL_S)


_FILE = Path(__file__).with_name("locustfile.py")
_LOCUST = [sys.executable, "-m", "locust", "-f", str(_FILE), "--only-summary", "--loglevel", "WARNING"]
