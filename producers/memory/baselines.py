"""Baseline producers of the pipe."""

from collections import deque
from pathlib import Path
from threading import Event, Thread

from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe
from bench.workload.rate_meter import RateMeter, stamp


def discard(endpoint: Endpoint, over: Event) -> None:
    """Take messages off the pipe until the event is set."""
    pipe = Pipe.named(endpoint.address)
    while not over.is_set():
        pipe.take(100_000, 0.05)


def client_loop(_: Endpoint, message: bytes, meter: RateMeter, __: Path) -> None:
    """Run the simplest hand-over within a process.

    A bounded deque, one thread appends messages that it makes, another pops them.
    """
    waiting, filler = deque[bytes](), message[64:]
    max_waiting, popped, over = max(2, min(200_000, 16 * 10**6 // len(message))), [0], Event()

    def pop() -> None:
        while not over.is_set():
            try:
                while True:
                    waiting.popleft()
                    popped[0] += 1
            except IndexError:
                over.wait(0.0005)

    reader = Thread(target=pop, daemon=True)
    reader.start()
    while meter.keep_measuring(popped[0]):
        for number in range(min(1000, max_waiting - len(waiting))):
            waiting.append(stamp(number) + filler)
    over.set()
    reader.join()
