"""The PEs, workers and leases that the master knows; pure, every call gets the time in monotonic seconds."""

from collections import OrderedDict
from typing import Any

from msgspec import Struct, field

from frameworks.harmonicio.engine.wire.control_messages import NodeAddress

MAX_ENTRIES = 10_000
"""PEs, idle legacy PEs, and workers that are kept; no cluster has more, but invented names could."""
_MAX_ENDED = 4096


class RegisteredPe(Struct):
    """A PE that sent a heartbeat, or a legacy PE that polled."""

    address: NodeAddress
    c_name: str
    worker: str
    last_heartbeat: float
    state: str = "running"
    """running, draining, or (a legacy PE) idle"""
    stats: dict[str, Any] = field(default_factory=dict)


class RegisteredWorker(Struct):
    """A worker that reported."""

    node_addr: str
    node_port: int
    node_name: str
    last_report: float
    report: dict[str, Any] = field(default_factory=dict)


class Registry:
    """PEs, workers and leases, each of which expires after a time without a sign of life.

    Args:
        pe_seconds: time after the last heartbeat of a PE.
        worker_seconds: time after the last report of a worker.
        lease_seconds: duration of a lease.
    """

    def __init__(self, *, pe_seconds: float = 5.0, worker_seconds: float = 15.0, lease_seconds: float = 10.0) -> None:
        self.pe_seconds, self.worker_seconds, self.lease_seconds = pe_seconds, worker_seconds, lease_seconds
        self.pes: dict[str, RegisteredPe] = {}
        self.workers: dict[str, RegisteredWorker] = {}
        self.leases: dict[tuple[str, int], float] = {}
        """when each lease lapses, by stream and session of a connector"""
        self.idle: dict[str, OrderedDict[str, RegisteredPe]] = {}
        """legacy PEs that wait for a connection, by image, in the order of registration"""
        self.assigned: dict[str, tuple[RegisteredPe, float]] = {}
        """legacy PEs that were assigned to a connector, and the time until which it may contact them"""
        self.ended: OrderedDict[str, float] = OrderedDict()

    def record_heartbeat(self, pe: RegisteredPe, now: float) -> bool:
        """Record a heartbeat; return whether the PE is new or has changed. A PE that has ended stays ended."""
        known = self.pes.get(pe.address.id)
        if pe.address.id in self.ended or (known is None and len(self.pes) >= MAX_ENTRIES):
            return False
        pe.last_heartbeat = now
        self.pes[pe.address.id] = pe
        return known is None or known.state != pe.state or known.address != pe.address

    def record_end(self, pe_id: str, now: float) -> bool:
        """Record that a PE has ended; return whether it was registered."""
        self.ended[pe_id] = now
        while len(self.ended) > _MAX_ENDED:
            self.ended.popitem(last=False)
        return self.pes.pop(pe_id, None) is not None

    def addresses(self, c_name: str) -> list[NodeAddress]:
        """Return the addresses of the running PEs of a stream."""
        return [pe.address for pe in self.pes.values() if pe.c_name == c_name and pe.state == "running"]

    def record_report(self, worker: RegisteredWorker, now: float) -> None:
        """Record the report of a worker."""
        if len(self.workers) >= MAX_ENTRIES:
            return
        worker.last_report = now
        self.workers[f"{worker.node_addr}:{worker.node_port}"] = worker

    def lease(self, c_name: str, session: int, now: float) -> None:
        """Grant or renew the lease of a connector."""
        self.leases[c_name, session] = now + self.lease_seconds

    def postpone(self, seconds: float) -> None:
        """Let everything expire later: for so long the master itself did not run, and could hear nobody."""
        for pe in self.pes.values():
            pe.last_heartbeat += seconds
        for worker in self.workers.values():
            worker.last_report += seconds
        self.leases = {key: until + seconds for key, until in self.leases.items()}
        self.assigned = {key: (pe, until + seconds) for key, (pe, until) in self.assigned.items()}

    def expire(self, now: float) -> tuple[list[str], list[str]]:
        """Remove what has expired; return the (ids of PEs, names of workers) that were removed."""
        pes = [pe_id for pe_id, pe in self.pes.items() if now > pe.last_heartbeat + self.pe_seconds]
        for pe_id in pes:
            del self.pes[pe_id]  # it may come back: only the report of its worker is final
        workers = [name for name, worker in self.workers.items() if now > worker.last_report + self.worker_seconds]
        for name in workers:
            del self.workers[name]
        self.leases = {key: until for key, until in self.leases.items() if until >= now}
        for key, (pe, until) in list(self.assigned.items()):
            if now > until:  # not contacted: it is still idle, or dead, which the next contact shows
                del self.assigned[key]
                self.idle.setdefault(pe.c_name, OrderedDict())[key] = pe
        return pes, workers

    # legacy PEs

    def register_idle(self, pe: RegisteredPe) -> None:
        """Register a legacy PE that waits for a connection; a second registration replaces the first."""
        key = _key(pe)
        self.assigned.pop(key, None)
        if sum(map(len, self.idle.values())) + len(self.assigned) < MAX_ENTRIES:
            self.idle.setdefault(pe.c_name, OrderedDict())[key] = pe

    def remove_idle(self, pe: RegisteredPe) -> None:
        """Remove a legacy PE that got a message, or could not be reached."""
        self.assigned.pop(_key(pe), None)
        idle = self.idle.get(pe.c_name, OrderedDict())
        idle.pop(_key(pe), None)
        if not idle:
            self.idle.pop(pe.c_name, None)

    def assign_idle(self, c_name: str, now: float) -> RegisteredPe | None:
        """Assign the legacy PE that has waited longest; it is idle again if it is not contacted in time."""
        pe = next(iter(self.idle.get(c_name, {}).values()), None)
        if pe is not None:
            self.remove_idle(pe)
            self.assigned[_key(pe)] = (pe, now + self.pe_seconds)
        return pe


def _key(pe: RegisteredPe) -> str:
    return f"{pe.address.host}:{pe.address.port}"
