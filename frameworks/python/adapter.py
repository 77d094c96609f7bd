"""No framework at all: Python processes that read the source themselves. The base line that every framework must justify."""

import sys

from msgspec import Struct

from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.system.ipc import Failure, Ready
from bench.system.supervisor import Child
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import Work
from frameworks.python.worker import Reading

READY_SECONDS = 60.0
BATCH_SECONDS, BATCH_BYTES, BATCH_MESSAGES = 0.05, 8 * 10**6, 10_000
"""Bounds of a batch: by the CPU time that its messages ask for, and by what must lie in memory."""


class PythonSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How many processes share the source's partitions."""

    processes: int | None = None
    """the framework's cores when left out"""


class PythonFramework:
    """Worker processes; each reads its share of the partitions and reports what it has done."""

    batch_interval = 0.0

    def __init__(self, settings: PythonSettings) -> None:
        self._settings = settings
        self._workers: list[Child] = []

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        return registry.missing_consumer(source)

    def open(self, cell: Cell, endpoint: Endpoint, work: Work, env: RunEnvironment) -> None:
        members = self._settings.processes or env.cores
        for member in range(members):
            command = [sys.executable, "-m", "frameworks.python.worker"]
            worker = env.supervisor.start(
                command, name=f"python-{member}", role="framework", received=ProcessingReport | Ready | Failure
            )
            self._workers.append(worker)
            worker.inbox.send(Reading(endpoint, work, member=member, members=members, most=_most(cell)))
        for worker in self._workers:
            worker.answer(Ready, READY_SECONDS)

    def poll(self) -> list[ProcessingReport]:
        alive = [worker.alive() for worker in self._workers]  # first: what a worker said last is still heard
        reports = [one for worker in self._workers for one in worker.received() if isinstance(one, ProcessingReport)]
        for worker, lives in zip(self._workers, alive, strict=True):
            if not lives and not reports:
                raise worker.died()
        return reports

    def close(self) -> None:
        while self._workers:
            self._workers.pop().stop()


def _most(cell: Cell) -> int:
    """How many messages a batch may have."""
    by_cost = int(BATCH_SECONDS / cell.cpu_seconds) if cell.cpu_seconds else BATCH_MESSAGES
    return max(1, min(BATCH_MESSAGES, by_cost, BATCH_BYTES // cell.message_bytes))
