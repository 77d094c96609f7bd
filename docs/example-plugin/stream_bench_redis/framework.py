"""A framework of one thread: the smallest plugin that satisfies the protocol."""

from queue import Empty, SimpleQueue
from threading import Event, Thread

from msgspec import Struct

from bench.errors import HarnessError, ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.protocols import Consumer, Endpoint, RunEnvironment
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor

TAKE_TIMEOUT_S = 0.05
CLOSE_TIMEOUT_S = 10.0


class OneThreadSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the reader."""

    most: int = 1000
    """messages taken at once"""


class OneThreadFramework:
    """Takes messages and does their work, one batch after the other, in a thread of the harness."""

    batch_interval = 0.0

    def __init__(self, settings: OneThreadSettings) -> None:
        self._settings = settings
        self._reports: SimpleQueue[ProcessingReport | HarnessError] = SimpleQueue()
        self._closed = Event()
        self._thread: Thread | None = None

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot read the source; None when it can."""
        return registry.missing_consumer(source)

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> None:  # noqa: ARG002  needs a thread only
        """Start to read."""
        consumer = registry.consumer(endpoint.source)
        consumer.open(endpoint, 0, 1)
        self._thread = Thread(target=self._run, args=(consumer, work), name="onethread", daemon=True)
        self._thread.start()

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call."""
        reports: list[ProcessingReport] = []
        try:
            while True:
                report = self._reports.get_nowait()
                if isinstance(report, HarnessError):
                    raise ProcessDiedError(f"the thread of onethread ended: {report}")
                reports.append(report)
        except Empty:
            return reports

    def close(self) -> None:
        """Stop the thread."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self, consumer: Consumer, work: MessageProcessor) -> None:
        try:
            while not self._closed.is_set():
                messages = consumer.take(self._settings.most, TAKE_TIMEOUT_S)
                for report in work.process(messages) if messages else ():
                    self._reports.put(report)
        except HarnessError as problem:
            self._reports.put(problem)
        finally:
            consumer.close()
