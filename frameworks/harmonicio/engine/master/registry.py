"""Who is there: PEs, workers, and who holds a lease; pure, every call is told the time."""

from collections import OrderedDict
from typing import Any

from msgspec import Struct, field

from frameworks.harmonicio.engine.wire.control_messages import Place

MOST = 10_000
"""PEs, idle old PEs, and workers that are remembered; a cluster has fewer, somebody who makes them up has not."""


class Pe(Struct):
    """A PE that was heard of."""

    place: Place
    c_name: str
    worker: str
    heard: float
    state: str = "running"
    """running, draining, or (an old PE) idle"""
    stats: dict[str, Any] = field(default_factory=dict)


class Worker(Struct):
    """A worker that reported."""

    node_addr: str
    node_port: int
    node_name: str
    heard: float
    report: dict[str, Any] = field(default_factory=dict)


class Registry:
    """PEs expire `pe_seconds`, workers `worker_seconds`, leases `lease_seconds` after they were last heard of."""

    def __init__(self, *, pe_seconds: float = 5.0, worker_seconds: float = 15.0, lease_seconds: float = 10.0) -> None:
        self.pe_seconds, self.worker_seconds, self.lease_seconds = pe_seconds, worker_seconds, lease_seconds
        self.pes: dict[str, Pe] = {}
        self.workers: dict[str, Worker] = {}
        self.leases: dict[tuple[str, int], float] = {}
        self.idle: dict[str, OrderedDict[str, Pe]] = {}
        """old PEs that wait for a connection, by image, in the order in which they registered"""
        self.handed: dict[str, tuple[Pe, float]] = {}
        """old PEs that were handed out, and until when they are given to be contacted"""
        self.gone: OrderedDict[str, float] = OrderedDict()

    def beat(self, pe: Pe, now: float) -> bool:
        """A PE is there; whether it is new. One that was declared dead for good stays so."""
        known = self.pes.get(pe.place.id)
        if pe.place.id in self.gone or (known is None and len(self.pes) >= MOST):
            return False
        pe.heard = now
        self.pes[pe.place.id] = pe
        return known is None or known.state != pe.state or known.place != pe.place

    def end(self, pe_id: str, now: float) -> bool:
        """A PE has ended; whether it was known."""
        self.gone[pe_id] = now
        while len(self.gone) > 4096:
            self.gone.popitem(last=False)
        return self.pes.pop(pe_id, None) is not None

    def places(self, c_name: str) -> list[Place]:
        """Where the stream's PEs listen that take frames."""
        return [pe.place for pe in self.pes.values() if pe.c_name == c_name and pe.state == "running"]

    def report(self, worker: Worker, now: float) -> None:
        """A worker is there; containers that it says have ended are PEs that have ended."""
        if len(self.workers) >= MOST:
            return
        worker.heard = now
        self.workers[f"{worker.node_addr}:{worker.node_port}"] = worker

    def lease(self, c_name: str, session: int, now: float) -> None:
        """A connector asked for, or renewed, its leases."""
        self.leases[c_name, session] = now + self.lease_seconds

    def expire(self, now: float) -> tuple[list[str], list[str]]:
        """(PEs, workers) that were not heard of for too long, and are forgotten now; leases that lapsed are too."""
        pes = [pe_id for pe_id, pe in self.pes.items() if now > pe.heard + self.pe_seconds]
        for pe_id in pes:
            del self.pes[pe_id]  # it may come back: only a worker's word is final
        workers = [name for name, worker in self.workers.items() if now > worker.heard + self.worker_seconds]
        for name in workers:
            del self.workers[name]
        self.leases = {key: until for key, until in self.leases.items() if until >= now}
        for key, (pe, until) in list(self.handed.items()):
            if (
                now > until
            ):  # handed out and never heard of again: it is idle still, or dead, which who tries it will find
                del self.handed[key]
                self.idle.setdefault(pe.c_name, OrderedDict())[key] = pe
        return pes, workers

    # old PEs

    def register_idle(self, pe: Pe) -> None:
        """An old PE waits for a connection; it does so once, however often it says it."""
        key = _key(pe)
        self.handed.pop(key, None)
        if sum(map(len, self.idle.values())) + len(self.handed) < MOST:
            self.idle.setdefault(pe.c_name, OrderedDict())[key] = pe

    def withdraw(self, pe: Pe) -> None:
        """An old PE is busy: it was given a message."""
        self.handed.pop(_key(pe), None)
        idle = self.idle.get(pe.c_name, OrderedDict())
        idle.pop(_key(pe), None)
        if not idle:
            self.idle.pop(pe.c_name, None)

    def hand_out(self, c_name: str, now: float) -> Pe | None:
        """The old PE that has waited longest; it is back when it was not contacted in time."""
        pe = next(iter(self.idle.get(c_name, {}).values()), None)
        if pe is not None:
            self.withdraw(pe)
            self.handed[_key(pe)] = (pe, now + self.pe_seconds)
        return pe

    def forget_idle(self, pe: Pe) -> None:
        """An old PE could not be reached."""
        self.withdraw(pe)


def _key(pe: Pe) -> str:
    return f"{pe.place.host}:{pe.place.port}"
