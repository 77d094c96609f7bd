"""No framework: Python processes that read the source themselves; the baseline of every framework."""

import sys
from contextlib import ExitStack

from msgspec import Struct

from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.system.ipc import Failure, Ready
from bench.system.supervisor import Child
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.python.worker import Reading

READY_TIMEOUT_S = 60.0
MAX_BATCH_CPU_S, MAX_BATCH_BYTES, MAX_BATCH_MESSAGES = 0.05, 8 * 10**6, 10_000
"""Bounds of a batch: by the CPU time that its messages ask for, and by what must lie in memory."""


class PythonSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of processes that share the source's partitions."""

    processes: int | None = None
    """the framework's cores when left out"""


class PythonFramework:
    """Worker processes that share the partitions of a source."""

    batch_interval = 0.0

    def __init__(self, settings: PythonSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        return registry.missing_consumer(source)

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "PythonWorkers":
        """Start to process the endpoint's messages; return once they are read."""
        return PythonWorkers(self._settings.processes or env.cores, cell, endpoint, work, env)


class PythonWorkers:
    """Running worker processes; each reads its share of the partitions and reports what it has processed."""

    def __init__(
        self, members: int, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment
    ) -> None:
        self._workers: list[Child] = []
        with ExitStack() as opening:
            opening.callback(self.close)
            for member in range(members):
                command = [sys.executable, "-m", "frameworks.python.worker"]
                worker = env.supervisor.start(
                    command, name=f"python-{member}", role="framework", received=ProcessingReport | Ready | Failure
                )
                self._workers.append(worker)
                worker.inbox.send(Reading(endpoint, work, member=member, members=members, most=_most(cell)))
            for worker in self._workers:
                worker.wait_reply(Ready, READY_TIMEOUT_S)
            opening.pop_all()  # it stays open

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call."""
        alive = [worker.alive() for worker in self._workers]  # first: what a worker said last is still heard
        reports = [one for worker in self._workers for one in worker.receive() if isinstance(one, ProcessingReport)]
        for worker, lives in zip(self._workers, alive, strict=True):
            if not lives and not reports:
                raise worker.exit_error()
        return reports

    def close(self) -> None:
        """Stop; idempotent."""
        while self._workers:
            self._workers.pop().stop()


def _most(cell: Cell) -> int:
    """Return how many messages a batch may have."""
    by_cost = int(MAX_BATCH_CPU_S / cell.cpu_seconds) if cell.cpu_seconds else MAX_BATCH_MESSAGES
    return max(1, min(MAX_BATCH_MESSAGES, by_cost, MAX_BATCH_BYTES // cell.message_bytes))
