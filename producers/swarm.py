"""Locust as a load, seen from the harness: a headless process that outlives cells and takes its orders over a channel."""

import sys
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.errors import Died, NotReady
from bench.faces import Endpoint, Ground
from bench.order import Halt, Order, Ready, Sent, Trouble
from bench.process import Supervisor

READY_SECONDS = 60.0
"""For Locust to start (about 2 s) and a sender to open."""


MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_TOP_PAD_": str(2**24)}
"""For glibc: keep the memory of large messages and use it again, instead of fetching fresh pages for each."""


class Opening(Struct, frozen=True, tag="opening"):
    """Open the sender of an endpoint; `Ready` follows."""

    endpoint: Endpoint


class Closing(Struct, frozen=True, tag="closing"):
    """Close the sender, giving up an order that is under way; `Ready` follows."""


Told = Opening | Closing | Order | Halt
Heard = Sent | Ready | Trouble


class Load:
    """The sender of one cell, in the run's Locust process."""

    def __init__(self) -> None:
        self._swarm: Swarm | None = None

    def open(self, endpoint: Endpoint, ground: Ground) -> None:
        self._swarm = ground.kept("swarm", lambda: Swarm(ground.supervisor))
        self._swarm.tell(Opening(endpoint))
        self._swarm.wait_ready(READY_SECONDS)

    def start(self, order: Order) -> None:
        self._standing.tell(order)

    def halt(self) -> None:
        self._standing.tell(Halt())

    def ask(self) -> list[Sent]:
        return self._standing.sent()

    def close(self) -> None:
        swarm, self._swarm = self._swarm, None
        if swarm is not None and swarm.alive():
            swarm.dismiss()

    @property
    def _standing(self) -> "Swarm":
        assert self._swarm is not None, "open comes first"
        return self._swarm


class Swarm:
    """A Locust process with one user; it opens no page, listens nowhere and prints no tables."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._child = supervisor.start(_command(), name="locust", role="load", heard=Heard, env=MEMORY)

    def tell(self, what: Told) -> None:
        """Raises Died when it is gone."""
        if not self._child.inbox.tell(what):
            raise self._died()

    def sent(self) -> list[Sent]:
        """What it has said of its order since the last call; raises Died once it has said the last."""
        alive, heard = self._child.alive(), self._heard()
        if not heard and not alive:
            raise self._died()
        return [one for one in heard if isinstance(one, Sent)]

    def wait_ready(self, seconds: float) -> None:
        """Return once it has done what it was told; raises Died or NotReady."""
        deadline = time.monotonic() + seconds
        while not any(isinstance(one, Ready) for one in self._heard(0.05)):
            if not self._child.alive():
                raise self._died()
            if time.monotonic() > deadline:
                raise NotReady(f"Locust was not ready within {seconds:g} s", self._child.log)

    def dismiss(self) -> None:
        """Have it close its sender; a process that does not is ended."""
        try:
            self.tell(Closing())
            self.wait_ready(READY_SECONDS)
        except (Died, NotReady):
            self.close()

    def alive(self) -> bool:
        return self._child.alive()

    def close(self) -> None:
        self._child.stop()

    def _heard(self, timeout: float = 0) -> list[Heard]:
        """Raises Died when it tells of trouble."""
        heard: list[Any] = list(self._child.inbox.heard(timeout))
        for one in heard:
            if isinstance(one, Trouble):
                raise Died(f"the load ended: {one.reason}", self._child.log)
        return heard

    def _died(self) -> Died:
        return self._child.died()


def _command() -> list[str]:
    quiet = ["--only-summary", "--loglevel", "WARNING"]
    users = ["--users", "1", "--spawn-rate", "1", "--stop-timeout", "1"]
    return [sys.executable, "-m", "locust", "-f", str(Path(__file__).with_name("locustfile.py")), "--headless", *users, *quiet]
