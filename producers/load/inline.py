"""A load generator in one thread of the harness, for short runs.

Starting a process would take longer than measuring there.
"""

import logging
from queue import Empty, SimpleQueue
from threading import Event, Thread

from bench.errors import HarnessError, ProcessDiedError
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.system import clock
from bench.workload.load_spec import LoadSpec, SendProgress
from bench.workload.open_loop import OpenLoopSender, run_load

logger = logging.getLogger(__name__)


class InlineLoadGenerator:
    """One spec at a time, each in a thread of its own."""

    def __init__(self, endpoint: Endpoint, env: RunEnvironment, workers: int = 1) -> None:  # noqa: ARG002  one thread
        self._thread: Thread | None = None
        self._progress: SimpleQueue[SendProgress | HarnessError | MemoryError] = SimpleQueue()
        self._cancelled = Event()
        self._sender = registry.open_sender(endpoint)

    def start(self, spec: LoadSpec) -> None:
        """Begin to send a spec; return at once."""
        self._cancelled.clear()
        self._thread = Thread(target=self._run, args=(spec,), name="load", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Give up what is not sent yet."""
        self._cancelled.set()

    def poll(self) -> list[SendProgress]:
        """Return the progress since the last call.

        Raises:
            ProcessDiedError: the thread of the load ended by an error.
            MemoryError: that of the thread.
        """
        progress: list[SendProgress] = []
        try:
            while True:
                item = self._progress.get_nowait()
                if isinstance(item, MemoryError):
                    raise item
                if isinstance(item, HarnessError):
                    raise ProcessDiedError(f"the inline load ended: {item}")
                progress.append(item)
        except Empty:
            return progress

    def close(self) -> None:
        """Close the senders."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join(timeout=15)
        self._sender.close()

    def _run(self, spec: LoadSpec) -> None:
        try:
            run_load(
                OpenLoopSender(spec, self._sender),
                self._progress.put,
                self._cancelled.is_set,
                clock=clock.make_reader(spec.clock),
            )
        except (HarnessError, MemoryError) as problem:
            self._progress.put(problem)
