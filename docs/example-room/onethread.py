"""A framework of one thread: the smallest plugin that satisfies the protocol."""

from queue import Empty, SimpleQueue
from threading import Event, Thread

from msgspec import Struct

from bench.errors import ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.plugin import FrameworkCapabilities, FrameworkPlugin
from bench.plugins.protocols import Consumer, Endpoint, RunEnvironment
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import Work


class OneThreadSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How it reads."""

    most: int = 1000
    """messages taken at once"""


class OneThreadFramework:
    """Takes messages and does their work, one batch after the other."""

    batch_interval = 0.0

    def __init__(self, settings: OneThreadSettings) -> None:
        self._settings = settings
        self._reports: SimpleQueue[ProcessingReport] = SimpleQueue()
        self._stopped = Event()
        self._thread: Thread | None = None

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any cell can be tried
        return registry.missing_consumer(source)

    def open(self, cell: Cell, endpoint: Endpoint, work: Work, env: RunEnvironment) -> None:  # noqa: ARG002  it runs in this process
        consumer = registry.consumer(endpoint.source)
        consumer.open(endpoint, 0, 1)
        self._thread = Thread(target=self._run, args=(consumer, work), name="onethread", daemon=True)
        self._thread.start()

    def poll(self) -> list[ProcessingReport]:
        reports: list[ProcessingReport] = []
        try:
            while True:
                reports.append(self._reports.get_nowait())
        except Empty:
            pass
        if not reports and self._thread is not None and not self._thread.is_alive() and not self._stopped.is_set():
            raise ProcessDiedError("the thread of onethread ended")
        return reports

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self, consumer: Consumer, work: Work) -> None:
        try:
            while not self._stopped.is_set():
                batch = consumer.take(self._settings.most, 0.05)
                for report in work.done(batch) if batch else ():
                    self._reports.put(report)
        finally:
            consumer.close()


plugin = FrameworkPlugin(
    settings=OneThreadSettings, open=OneThreadFramework, capabilities=FrameworkCapabilities(in_process=True)
)
