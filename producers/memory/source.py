"""A pipe within the harness's own process: for trying the harness itself, without any server."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

from msgspec import Struct

from bench.model.cell import Cell
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.system.pipe import Pipe
from bench.workload.rate_meter import RateMeter, stamp

LOAD, ALONE = "inline", True


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """There is nothing to set."""


class Source:
    """A pipe of its own for each cell."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._name = ""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  every cell and entropy can pass
        return None

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        self._name = f"{env.data}/{cell.name}"
        Pipe.forget(self._name)
        return Endpoint("memory", self._name)

    def clear(self) -> None:
        """Nothing is left behind."""

    def close(self) -> None:
        Pipe.forget(self._name)


class Sender:
    """Writes into the pipe; what is in it counts as confirmed."""

    def __init__(self) -> None:
        self._confirmed = 0

    def open(self, endpoint: Endpoint) -> None:
        self._pipe = Pipe.named(endpoint.address)

    def send(self, messages: Sequence[bytes]) -> int:
        taken = self._pipe.put(messages)
        self._confirmed += taken
        return taken

    def confirmed(self) -> tuple[int, int]:
        return self._confirmed, 0

    def close(self) -> None:
        """The pipe belongs to the Source."""


def discard(endpoint: Endpoint, over: Event) -> None:
    """Pop what comes, until it is over."""
    pipe = Pipe.named(endpoint.address)
    while not over.is_set():
        pipe.take(100_000, 0.05)


def bare(_: Endpoint, message: bytes, meter: RateMeter, __: Path) -> None:
    """The plainest hand-over within a process: a bounded deque, one thread appends messages that it makes, another pops them."""
    waiting, filler = deque[bytes](), message[64:]
    most, popped, over = max(2, min(200_000, 16 * 10**6 // len(message))), [0], Event()

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
        for number in range(min(1000, most - len(waiting))):
            waiting.append(stamp(number) + filler)
    over.set()
    reader.join()


BASELINES = {"bare": bare}
