"""The decisions of the control plane: heartbeats, reports and requests come in, PEs and addresses come out.

The HTTP routes (`api`, `legacy_api`) call it; it knows neither HTTP nor sockets.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from itertools import count

from msgspec import Struct

from frameworks.harmonicio.engine.errors import HarmonicError, RefusedError, UnreachableError
from frameworks.harmonicio.engine.http import can_be_host
from frameworks.harmonicio.engine.master.fleet import Fleet, StreamSpec
from frameworks.harmonicio.engine.master.irm_loop import IrmLoop
from frameworks.harmonicio.engine.master.queue import MessageQueue
from frameworks.harmonicio.engine.master.registry import RegisteredPe, RegisteredWorker, Registry
from frameworks.harmonicio.engine.wire.control_messages import NodeAddress

MAX_SAMPLES = 100_000


class WorkerSample(Struct, frozen=True, array_like=True):
    """The CPU of one worker at one moment: Unix seconds, worker, shares of its CPU used and allotted, number of PEs."""

    at: float
    worker: str
    used: float | None
    allotted: float | None
    pes: int


class Coordinator:
    """The state of a cluster, and what changes it.

    Args:
        registry: PEs, workers, leases.
        queue: queued messages.
        fleet: desired PEs.
        irm: the resource manager; None when it is off.
        on_pes_changed: called with the name of a stream whose PEs came or went.
    """

    def __init__(
        self,
        registry: Registry,
        queue: MessageQueue,
        fleet: Fleet,
        irm: IrmLoop | None,
        *,
        on_pes_changed: Callable[[str], None],
    ) -> None:
        self.registry, self.queue, self.fleet, self.irm = registry, queue, fleet, irm
        self.samples: deque[WorkerSample] = deque(maxlen=MAX_SAMPLES)
        self._on_pes_changed = on_pes_changed
        self._turn = count()

    def record_heartbeat(self, pe: RegisteredPe) -> bool:
        """Record the heartbeat of a PE; return False to make it end. Raises RefusedError for an impossible host."""
        if not can_be_host(pe.address.host):
            raise RefusedError(f"{pe.address.host!r} is neither an address nor the name of a host")
        if pe.state == "gone":
            self.record_pe_end(pe.address.id, pe.c_name)
            return False
        withdrawn = self.fleet.started_for(pe.address.id) == pe.c_name and not self.was_requested(pe.c_name)
        if withdrawn:  # it was silent when its stream was, and nobody could end it
            pe.state = "draining"
        if self.registry.record_heartbeat(pe, time.monotonic()):
            self._on_pes_changed(pe.c_name)
        return not withdrawn and pe.address.id not in self.registry.ended

    def record_report(self, worker: RegisteredWorker) -> None:
        """Record the report of a worker; PEs whose containers have exited have ended."""
        report = worker.report
        self.registry.record_report(worker, time.monotonic())
        for container in report.get("docker", []):
            if isinstance(container, dict) and str(container.get("status", "")).startswith("exited"):
                self.record_pe_end(str(container.get("short_id", "")), "")
        used, allotted = _number(report.get("cpu")), _number(report.get("cpu_allotted"))
        self.samples.append(WorkerSample(time.time(), worker.node_name, used, allotted, len(report.get("docker", []))))

    def record_pe_end(self, pe_id: str, c_name: str) -> bool:
        """Record that a PE has ended; return whether it was known."""
        pe = self.registry.pes.get(pe_id)
        known = pe_id not in self.registry.ended and self.registry.record_end(pe_id, time.monotonic())
        if pe is not None:
            self._on_pes_changed(pe.c_name)
        return known or any(one.address.id == pe_id for one in self.registry.idle.get(c_name, {}).values())

    def next_address(self, c_name: str) -> NodeAddress | None:
        """Return the PE for one message of a legacy connector: ours in turn, or the longest waiting legacy PE."""
        addresses = self.registry.addresses(c_name)
        if addresses:
            return addresses[next(self._turn) % len(addresses)]
        pe = self.registry.assign_idle(c_name, time.monotonic())
        return pe.address if pe is not None else None

    def request_containers(self, spec: StreamSpec) -> None:
        """Handle a container request of the IRM era: the IRM places the PEs, or `num` more are desired without it."""
        if self.irm is not None:
            self.irm.request(spec)
            return
        present = self.fleet.desired.get(spec.c_name)
        num = spec.num + (present.num if present else 0)
        self.fleet.submit(StreamSpec(c_name=spec.c_name, num=num, image=spec.image, settings=spec.settings))

    def was_requested(self, c_name: str) -> bool:
        """Return whether PEs of a stream are desired, or were requested from the IRM."""
        return c_name in self.fleet.desired or (self.irm is not None and self.irm.knows(c_name))

    async def withdraw(self, c_name: str, *, purge: bool) -> dict[str, int]:
        """Drain and end the PEs of a stream; `purge` deletes its queued messages. Return how many of each.

        Raises:
            UnreachableError: some PEs could not be told to end; the messages are deleted all the same.
        """
        self.fleet.forget(c_name)
        if self.irm is not None:
            self.irm.forget(c_name)
        pes = [pe.address.id for pe in self.registry.pes.values() if pe.c_name == c_name]
        pes += [pe_id for pe_id, (name, _, _) in self.fleet.starting.items() if name == c_name]
        purged = self.queue.purge(c_name) if purge else 0
        results = await asyncio.gather(*(self.fleet.stop(pe_id) for pe_id in pes), return_exceptions=True)
        failed = [result for result in results if result is not None]
        if failed:
            if (bug := next((one for one in failed if not isinstance(one, HarmonicError)), None)) is not None:
                raise bug
            deleted = f"; {purged} messages were deleted" if purge else ""
            raise UnreachableError(f"{len(failed)} of {len(pes)} PEs were not told to end: {failed[0]}{deleted}")
        return {"stopped": len(pes), "purged": purged}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
