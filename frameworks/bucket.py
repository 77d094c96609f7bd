"""A token bucket: takes at most `rate` messages a second, whatever they are; its ceiling is known as well as the clock is.

It stands for a server with a quota. It reads its source in the harness' process, as `capacity` does; what comes while there is no
token waits in the source. Up to `burst` tokens are saved while nothing comes.
"""

import time
from queue import Empty, SimpleQueue
from threading import Event, Thread

from msgspec import Struct

from bench import rooms
from bench.errors import Died
from bench.faces import Consumer, Endpoint, Ground
from bench.scenario import Cell
from bench.tally import Report
from bench.units import Rate
from bench.work import Work

LONGEST_WAIT = 0.02


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The rate at which tokens come, in messages/s, and how many are saved."""

    rate: Rate = Rate(2000)
    burst: int = 20


class Framework:
    """One thread that spends a token on each message."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self._stopped = Event()
        self._thread: Thread | None = None

    @property
    def batch_interval(self) -> float:
        return 0.0

    def refuses(self, cell: Cell, endpoint_source: str) -> str | None:  # noqa: ARG002  any cell can be tried
        return rooms.without_consumer(endpoint_source)

    def open(self, cell: Cell, endpoint: Endpoint, work: Work, ground: Ground) -> None:  # noqa: ARG002  it runs in this process
        consumer = rooms.consumer(endpoint.source)
        consumer.open(endpoint, 0, 1)
        self._thread = Thread(target=self._run, args=(consumer, work), name="bucket", daemon=True)
        self._thread.start()

    def ask(self) -> list[Report]:
        reports: list[Report] = []
        try:
            while True:
                reports.append(self._reports.get_nowait())
        except Empty:
            pass
        if not reports and self._thread is not None and not self._thread.is_alive() and not self._stopped.is_set():
            raise Died("the bucket's thread ended; the run's log says why")
        return reports

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self, consumer: Consumer, work: Work) -> None:
        rate, burst = float(self._settings.rate), float(self._settings.burst)
        tokens, last = 0.0, time.monotonic()
        while not self._stopped.is_set():
            now = time.monotonic()
            tokens, last = min(burst, tokens + (now - last) * rate), now
            if tokens < 1:
                self._stopped.wait(min(LONGEST_WAIT, (1 - tokens) / rate))
                continue
            batch = consumer.take(int(tokens), LONGEST_WAIT)
            tokens -= len(batch)
            for report in work.done(batch):
                self._reports.put(report)
        consumer.close()
