"""No framework: Python processes that read the source themselves; the baseline of every framework."""

import sys
from contextlib import ExitStack
from typing import Annotated

from msgspec import Meta, Struct

from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.plugins.reporting_children import poll_reports
from bench.system.child import Child
from bench.system.ipc import Failure, Ready
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.batch_limits import max_batch_messages
from frameworks.python.worker import ReadSource

READY_TIMEOUT_S = 60.0
MAX_BATCH_CPU_S = 0.05


class PythonSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of processes that share the source's partitions."""

    processes: Annotated[int, Meta(ge=1)] | None = None
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
        """Start to process the endpoint's messages; return once they are read.

        Raises:
            ProcessDiedError: a worker cannot read the endpoint, or ended.
            NotReadyError: it takes too long.
        """
        return PythonWorkers(self._settings.processes or env.cores, cell, endpoint, work, env)


class PythonWorkers:
    """Running worker processes; each reads its share of the partitions and reports what it has processed."""

    def __init__(
        self, members: int, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment
    ) -> None:
        self._workers: list[Child] = []
        most = max_batch_messages(cell, MAX_BATCH_CPU_S)
        with ExitStack() as opening:
            opening.callback(self.close)
            for member in range(members):
                command = [sys.executable, "-m", "frameworks.python.worker"]
                worker = env.supervisor.start(
                    command, name=f"python-{member}", role="framework", received=ProcessingReport | Ready | Failure
                )
                self._workers.append(worker)
                worker.inbox.send(ReadSource(endpoint, work, member=member, members=members, most=most))
            for worker in self._workers:
                worker.wait_reply(Ready, READY_TIMEOUT_S)
            opening.pop_all()  # it stays open

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: a worker ended.
        """
        return poll_reports(self._workers)

    def close(self) -> None:
        """Stop; idempotent."""
        while self._workers:
            self._workers.pop().stop()
