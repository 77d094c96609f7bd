"""A loop of a source's room in a process of its own: a rival that the load is measured against, or a null reader."""

import sys
import threading
from pathlib import Path

from msgspec import Struct

from bench.errors import HarnessError
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.system.ipc import Channel, Failure, Ready
from bench.workload.rate_meter import RateMeter


class BaselineRun(Struct, frozen=True, tag="contest"):
    """Run that rival of a source for some seconds; `Outcome` follows."""

    baseline: str
    endpoint: Endpoint
    message_bytes: int
    seconds: float
    cache: str


class Discarding(Struct, frozen=True, tag="discarding"):
    """Take messages off an endpoint and throw them away until the channel ends."""

    endpoint: Endpoint


class Outcome(Struct, frozen=True, tag="outcome"):
    """What a rival confirmed in a second."""

    rate: float


Command = BaselineRun | Discarding
Reply = Outcome | Ready | Failure


def main() -> None:
    """Serve the channel whose file number ends the command line: one task, then its end."""
    channel: Channel[Command] = Channel.inherited(int(sys.argv[-1]), Command)  # type: ignore[arg-type]  # a union of Structs
    try:
        (told,) = channel.receive()
        if isinstance(told, BaselineRun):
            channel.send(Outcome(run_baseline(told)))
        else:
            threading.Thread(target=_discard, args=(channel, told.endpoint), daemon=True).start()
            channel.send(Ready())
        channel.receive()
    except (EOFError, OSError):
        return
    except HarnessError as problem:
        channel.send(Failure(str(problem)))
        sys.exit(1)


def run_baseline(contest: BaselineRun) -> float:
    """The rate of a rival, run here and now."""
    meter = RateMeter(contest.seconds)
    registry.baselines(contest.endpoint.source)[contest.baseline](
        contest.endpoint, b"x" * contest.message_bytes, meter, Path(contest.cache)
    )
    return meter.rate


def _discard(channel: Channel[Command], endpoint: Endpoint) -> None:
    try:
        registry.discarding(endpoint.source)(endpoint, threading.Event())
    except HarnessError as problem:
        channel.send(Failure(str(problem)))


if __name__ == "__main__":
    main()
