"""The number of PEs of a stream, which changes while they process messages.

PEs that are missing are started together. Surplus ones end one by one: each processes what it has received, and only
then the next one is asked, so that the others take over a little at a time.
"""

import math
import time
from collections.abc import Mapping
from typing import Any

from bench.elasticity.live_samples import WorkerCounters
from bench.errors import PluginError
from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.operator_client import OperatorClient

LOOK_INTERVAL_S = 0.3
"""Between two looks for surplus PEs; one may appear late, when it was started just before fewer were wanted."""


class PeScaling:
    """The PEs of one stream.

    Args:
        operator: of the cluster's master.
        wanted: what the master was asked for: c_name, image, num, settings.
    """

    def __init__(self, operator: OperatorClient, wanted: Mapping[str, Any]) -> None:
        self._operator, self._wanted = operator, dict(wanted)
        self._ending: set[str] = set()
        self._look_at = math.inf

    @property
    def ended(self) -> int:
        """Return how many PEs were asked to end."""
        return len(self._ending)

    def max_workers(self) -> int:
        """Return how many PEs the workers of the cluster run at most, as far as these are configured as ours are."""
        return WorkerConfig().most_pes * max(1, len(self._status()["workers"]))

    def rescale(self, pes: int) -> None:
        """Ask for so many PEs. Raises PluginError where the master refuses or does not answer."""
        self._wanted["num"] = pes
        try:
            self._operator.submit(self._wanted)  # before any PE ends: the master would start it again
        except HarmonicError as problem:
            raise PluginError("harmonicio", "rescale", str(problem)) from problem
        self._look_at = 0.0

    def step(self) -> None:
        """Ask the next surplus PE to end, if no other one is about to; looks every LOOK_INTERVAL_S at most."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_INTERVAL_S
        present = [str(pe["id"]) for pe in self._pes()]
        if len(present) > self._wanted["num"] and self._ending.isdisjoint(present):
            self._end(present[-1])

    def counters(self) -> list[WorkerCounters]:
        """Return what each PE has counted that is not about to end, as of its last heartbeat."""
        now = time.monotonic()
        return [
            WorkerCounters(
                str(pe["id"]),
                now - float(pe["age"]),
                int(pe["stats"].get("processed", 0)),
                float(pe["stats"].get("busy_seconds", 0.0)),
            )
            for pe in self._pes()
            if pe["state"] == "running" and pe["id"] not in self._ending
        ]

    def _end(self, pe: str) -> None:
        self._ending.add(pe)
        try:
            self._operator.stop(pe)
        except HarmonicError as problem:
            raise PluginError("harmonicio", "rescale", f"the PE {pe} cannot be ended: {problem}") from problem

    def _pes(self) -> list[dict[str, Any]]:
        """Return the PEs of the stream, the oldest first."""
        return [pe for pe in self._status()["pes"] if pe["c_name"] == self._wanted["c_name"]]

    def _status(self) -> dict[str, Any]:
        try:
            return self._operator.status()
        except HarmonicError as problem:
            raise PluginError("harmonicio", "rescale", str(problem)) from problem
