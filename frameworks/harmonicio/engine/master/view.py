"""What can be seen of streams, PEs, workers and leases: plain data for the dashboard, the metrics and the operator."""

from typing import Any

from frameworks.harmonicio.engine.master.fleet import Fleet
from frameworks.harmonicio.engine.master.queue import Backlog
from frameworks.harmonicio.engine.master.registry import Registry


def view_of(registry: Registry, backlog: Backlog, fleet: Fleet, now: float) -> dict[str, Any]:
    """By table; `now` is monotonic seconds."""
    lengths = backlog.lengths()
    names = sorted({*lengths, *fleet.wanted, *(pe.c_name for pe in registry.pes.values())})
    by_worker = [pe.worker for pe in registry.pes.values()]
    return {
        "streams": [
            {
                "c_name": name,
                "wanted": fleet.wanted[name].num if name in fleet.wanted else 0,
                "pes": sum(pe.c_name == name for pe in registry.pes.values()),
                "queued": lengths.get(name, 0),
                "problem": fleet.problems.get(name, ""),
            }
            for name in names
        ],
        "pes": [
            {"id": pe.place.id, "c_name": pe.c_name, "worker": pe.worker, "state": pe.state, "age": now - pe.heard,
             "stats": pe.stats, "host": pe.place.host, "port": pe.place.port}
            for pe in registry.pes.values()
        ],
        "workers": [
            {"name": worker.node_name, "address": name, "pes": by_worker.count(name), "cpu": worker.report.get("cpu"),
             "age": now - worker.heard}
            for name, worker in registry.workers.items()
        ],
        "leases": [
            {"c_name": c_name, "session": f"{session:016x}", "seconds_left": until - now}
            for (c_name, session), until in registry.leases.items()
        ],
    }  # fmt: skip
