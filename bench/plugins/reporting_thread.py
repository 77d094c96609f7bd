"""A thread of the harness that processes messages: what frameworks in the process share."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread

from bench.errors import HarnessError, ProcessDiedError
from bench.workload.delivery_counts import ProcessingReport

CLOSE_TIMEOUT_S = 10.0


class ReportingThread:
    """A running thread whose reports are polled.

    Args:
        name: in messages about its death.
        run: the thread's work; gets this object, puts reports with `report`, and returns once `wait` says so.
    """

    def __init__(self, name: str, run: "Callable[[ReportingThread], None]") -> None:
        self._name = name
        self._items: SimpleQueue[ProcessingReport | HarnessError] = SimpleQueue()
        self._stopped = Event()
        self._thread = Thread(target=self._run, args=(run,), name=name, daemon=True)
        self._thread.start()

    def report(self, report: ProcessingReport) -> None:
        """Queue a report; called by the thread."""
        self._items.put(report)

    def wait(self, seconds: float = 0.0) -> bool:
        """Return whether the thread must end, after at most so many seconds; called by the thread."""
        return self._stopped.wait(seconds)

    def poll(self) -> list[ProcessingReport]:
        """Return the reports since the last call.

        Raises:
            ProcessDiedError: The thread ended by itself, and everything that it had reported was returned before.
        """
        alive = self._thread.is_alive()  # first: what it reported last is still returned
        reports: list[ProcessingReport] = []
        try:
            while True:
                item = self._items.get_nowait()
                if isinstance(item, HarnessError):
                    raise ProcessDiedError(f"the thread of {self._name} ended: {item}")
                reports.append(item)
        except Empty:
            pass
        if not alive and not reports and not self._stopped.is_set():
            raise ProcessDiedError(f"the thread of {self._name} ended")
        return reports

    def close(self) -> None:
        """End the thread; idempotent."""
        self._stopped.set()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self, run: "Callable[[ReportingThread], None]") -> None:
        try:
            run(self)
        except HarnessError as problem:
            self._items.put(problem)
