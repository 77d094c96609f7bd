"""The master's streams, PEs, workers and leases as plain data, for the dashboard, the metrics and operators."""

from typing import Any

from frameworks.harmonicio.engine.master.fleet import Fleet
from frameworks.harmonicio.engine.master.queue import MessageQueue
from frameworks.harmonicio.engine.master.registry import Registry


def build_tables(registry: Registry, queue: MessageQueue, fleet: Fleet, now: float) -> dict[str, Any]:
    """Return the tables of a view by name; `now` is monotonic seconds."""
    lengths = queue.lengths()
    names = sorted({*lengths, *fleet.desired, *(pe.c_name for pe in registry.pes.values())})
    by_worker = [pe.worker for pe in registry.pes.values()]
    return {
        "streams": [
            {
                "c_name": name,
                "wanted": fleet.desired[name].num if name in fleet.desired else 0,
                "pes": sum(pe.c_name == name for pe in registry.pes.values()),
                "queued": lengths.get(name, 0),
                "problem": fleet.problem(name, now),
            }
            for name in names
        ],
        "pes": [
            {"id": pe.address.id, "c_name": pe.c_name, "worker": pe.worker, "state": pe.state,
             "age": now - pe.last_heartbeat, "stats": pe.stats, "host": pe.address.host, "port": pe.address.port}
            for pe in registry.pes.values()
        ],
        "workers": [
            {"name": worker.node_name, "address": name, "pes": by_worker.count(name), "cpu": worker.report.get("cpu"),
             "age": now - worker.last_report}
            for name, worker in registry.workers.items()
        ],
        "leases": [
            {"c_name": c_name, "session": f"{session:016x}", "seconds_left": until - now}
            for (c_name, session), until in registry.leases.items()
        ],
    }  # fmt: skip
