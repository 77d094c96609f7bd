"""A load in one thread of the harness: for the smoke run, where starting a process would take longer than measuring."""

import logging
from queue import Empty, SimpleQueue
from threading import Event, Thread

from bench.errors import Died, HarnessError
from bench.plugins import registry
from bench.plugins.protocols import Endpoint, Ground, Sender
from bench.system import clock
from bench.workload.load_spec import Order, Sent
from bench.workload.open_loop import Pump, drive

logger = logging.getLogger(__name__)


class Load:
    """One order at a time, each in a thread of its own."""

    def __init__(self) -> None:
        self._sender: Sender | None = None
        self._thread: Thread | None = None
        self._told: SimpleQueue[Sent | HarnessError] = SimpleQueue()
        self._halted = Event()

    def open(self, endpoint: Endpoint, ground: Ground) -> None:  # noqa: ARG002  it needs no more than its thread
        self._sender = registry.sender(endpoint.source)
        self._sender.open(endpoint)

    def start(self, order: Order) -> None:
        self._halted.clear()
        self._thread = Thread(target=self._run, args=(order,), name="load", daemon=True)
        self._thread.start()

    def halt(self) -> None:
        self._halted.set()

    def ask(self) -> list[Sent]:
        told: list[Sent] = []
        try:
            while True:
                item = self._told.get_nowait()
                if isinstance(item, HarnessError):
                    raise Died(f"the inline load ended: {item}")
                told.append(item)
        except Empty:
            return told

    def close(self) -> None:
        self._halted.set()
        if self._thread is not None:
            self._thread.join(timeout=15)
        if self._sender is not None:
            self._sender.close()

    def _run(self, order: Order) -> None:
        assert self._sender is not None
        try:
            drive(Pump(order, self._sender), self._told.put, self._halted.is_set, clock=clock.reader(order.clock))
        except HarnessError as problem:
            self._told.put(problem)
