"""Bytewax as a framework under test: one dataflow on a cluster of processes, which share a topic's partitions.

Two threads of one process are as fast as one, since the messages are processed in Python; so there is a process a core.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from bench.errors import NotReadyError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.plugins.reporting_children import poll_reports
from bench.services.ports import LOOPBACK, free_ports
from bench.services.python_environments import PythonEnvironment, interpreter, variables
from bench.system.child import Child
from bench.system.ipc import Failure
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.batch_limits import max_batch_messages
from frameworks.bytewax.commands import PartitionOpened, RunDataflow
from producers.kafka import security

ENVIRONMENT = PythonEnvironment("bytewax", Path(__file__).with_name("requirements.lock"), 30, ("3.11", "3.12"))
READY_TIMEOUT_S = 60.0
MAX_BATCH_CPU_S = 0.05
_POLL_INTERVAL_S = 0.05


class BytewaxSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of processes that share the source's partitions."""

    processes: Annotated[int, Meta(ge=1)] | None = None
    """the framework's cores when left out"""


class BytewaxFramework:
    """A cluster of processes for each cell."""

    batch_interval = 0.0

    def __init__(self, settings: BytewaxSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        return None if source == "kafka" else f"Bytewax comes with a connector for kafka, and with none for {source}"

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "BytewaxCluster":
        """Start to process the endpoint's messages; return once every partition is read.

        Raises:
            UsageError: Bytewax is not installed.
            ProcessDiedError: a process cannot read the endpoint, or ended.
            NotReadyError: it takes too long.
        """
        return BytewaxCluster(self._settings.processes or env.cores, cell, endpoint, work, env)


class BytewaxCluster:
    """Running processes; each reads some of the partitions and reports what it has processed."""

    def __init__(
        self, processes: int, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment
    ) -> None:
        self._processes: list[Child] = []
        self._early: list[ProcessingReport] = []
        """of a topic with messages, whose partitions do not open at the same time"""
        python, found = interpreter(ENVIRONMENT, env.cache), variables(ENVIRONMENT, env.cache)
        command = RunDataflow(
            brokers=endpoint.address,
            topic=endpoint.name,
            client={key: str(value) for key, value in security.for_librdkafka(endpoint.client).items()},
            work=replace(work, results_together=True),
            most=max_batch_messages(cell, MAX_BATCH_CPU_S),
            addresses=tuple(f"{LOOPBACK}:{port}" for port in free_ports(processes)) if processes > 1 else (),
            process=0,
        )
        with ExitStack() as opening:
            opening.callback(self.close)
            for number in range(processes):
                process = env.supervisor.start(
                    [str(python), "-m", "frameworks.bytewax.worker"],
                    name=f"bytewax-{number}",
                    role="framework",
                    received=ProcessingReport | PartitionOpened | Failure,
                    env=found,
                )
                self._processes.append(process)
                process.inbox.send(replace(command, process=number))
            self._wait_for(endpoint.parts)
            opening.pop_all()  # it stays open

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: a process ended.
        """
        early, self._early = self._early, []
        return early or poll_reports(self._processes)

    def close(self) -> None:
        """Stop; idempotent."""
        while self._processes:
            self._processes.pop().stop()

    def _wait_for(self, partitions: int) -> None:
        """Return once so many partitions are open."""
        opened, deadline = 0, time.monotonic() + READY_TIMEOUT_S
        while opened < partitions:
            for process in self._processes:
                alive = process.alive()
                said = process.receive(_POLL_INTERVAL_S)
                opened += sum(isinstance(one, PartitionOpened) for one in said)
                self._early += [one for one in said if isinstance(one, ProcessingReport)]
                if not alive:
                    raise process.exit_error()
            if time.monotonic() > deadline:
                raise NotReadyError(
                    f"Bytewax has opened {opened} of {partitions} partitions after {READY_TIMEOUT_S:g} s",
                    self._processes[0].log,
                )
