"""Calibration worker: a process that runs a baseline producer, or a consumer that discards messages."""

import threading
from pathlib import Path

from msgspec import Struct

from bench.errors import HarnessError, UsageError
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.system.child_main import serve_command
from bench.system.ipc import Channel, Failure, Ready
from bench.workload.rate_meter import RateMeter


class BaselineRun(Struct, frozen=True, tag="baseline-run"):
    """A command: run that baseline producer of a source for some seconds; `MeasuredRate` follows."""

    baseline: str
    endpoint: Endpoint
    message_bytes: int
    seconds: float
    cache: str


class Discarding(Struct, frozen=True, tag="discarding"):
    """A command: read an endpoint and discard its messages until the channel ends."""

    endpoint: Endpoint


class MeasuredRate(Struct, frozen=True, tag="measured-rate"):
    """A reply: the rate that a baseline producer had confirmed, in messages/s."""

    rate: float


Command = BaselineRun | Discarding
Reply = MeasuredRate | Ready | Failure


def main() -> None:
    """Serve the channel whose file number ends the command line: one command, then its end."""
    serve_command(Command, _execute)


def _execute(channel: Channel[Command], command: Command) -> None:
    if isinstance(command, BaselineRun):
        channel.send(MeasuredRate(run_baseline(command)))
    else:
        threading.Thread(target=_discard, args=(channel, command.endpoint), daemon=True).start()
        channel.send(Ready())
    channel.receive()


def run_baseline(task: BaselineRun) -> float:
    """Run a baseline producer in this process; return its rate in messages/s."""
    meter = RateMeter(task.seconds)
    produce = registry.source_plugin(task.endpoint.source).baselines[task.baseline]
    produce(task.endpoint, b"x" * task.message_bytes, meter, Path(task.cache))
    return meter.rate


def _discard(channel: Channel[Command], endpoint: Endpoint) -> None:
    discard = registry.source_plugin(endpoint.source).discard
    try:
        if discard is None:
            raise UsageError(f"{endpoint.source} has no discarding reader")
        discard(endpoint, threading.Event())
    except HarnessError as problem:
        channel.send(Failure(str(problem)))


if __name__ == "__main__":
    main()
