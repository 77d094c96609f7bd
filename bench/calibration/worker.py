"""A loop of a source's room in a process of its own: a rival that the load is measured against, or a null reader."""

import sys
import threading
from pathlib import Path

from msgspec import Struct

from bench.errors import HarnessError
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.system.ipc import Channel
from bench.workload.load_spec import Ready, Trouble
from bench.workload.rate_meter import Meter


class Contest(Struct, frozen=True, tag="contest"):
    """Run that rival of a source for some seconds; `Outcome` follows."""

    rival: str
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


Told = Contest | Discarding
Heard = Outcome | Ready | Trouble


def main() -> None:
    """Serve the channel whose file number ends the command line: one task, then its end."""
    channel: Channel[Told] = Channel.inherited(int(sys.argv[-1]), Told)  # type: ignore[arg-type]  # a union of Structs
    try:
        (told,) = channel.hear()
        if isinstance(told, Contest):
            channel.tell(Outcome(raced(told)))
        else:
            threading.Thread(target=_discard, args=(channel, told.endpoint), daemon=True).start()
            channel.tell(Ready())
        channel.hear()
    except (EOFError, OSError):
        return
    except HarnessError as problem:
        channel.tell(Trouble(str(problem)))
        sys.exit(1)


def raced(contest: Contest) -> float:
    """The rate of a rival, run here and now."""
    meter = Meter(contest.seconds)
    registry.rivals(contest.endpoint.source)[contest.rival](
        contest.endpoint, b"x" * contest.message_bytes, meter, Path(contest.cache)
    )
    return meter.rate


def _discard(channel: Channel[Told], endpoint: Endpoint) -> None:
    try:
        registry.discarding(endpoint.source)(endpoint, threading.Event())
    except HarnessError as problem:
        channel.tell(Trouble(str(problem)))


if __name__ == "__main__":
    main()
