"""A bridge: reads its share of another source and feeds a stream with it, until the harness closes its channel."""

import time
from collections.abc import Sequence
from contextlib import closing

from msgspec import Struct

from bench.errors import PluginError
from bench.plugins import registry
from bench.plugins.protocols import Consumer, Endpoint
from bench.system.child_main import serve_command
from bench.system.ipc import Channel, Ready
from bench.workload.processing import report_idle
from bench.workload.span_recorder import NoRecorder, SpanRecorder
from frameworks.harmonicio.engine.connector import Feeder, Options
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.spans import FrameSpans

_TIMEOUT_S, _PAUSE_S = 0.02, 0.001
_POLL_INTERVAL_S = 0.1


class Bridging(Struct, frozen=True, tag="bridging"):
    """A command, sent once: read the member's share of an endpoint and feed a stream with it."""

    endpoint: Endpoint
    fed: Options
    """of the connector to the stream"""
    member: int
    members: int
    most: int
    """messages to take at once"""
    traced: bool = False
    """whether reports without messages carry spans of the bridge"""


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(Bridging, _bridge)


def _bridge(channel: Channel[Bridging], command: Bridging) -> None:
    consumer = registry.open_consumer(command.endpoint, command.member, command.members)
    with closing(consumer), closing(Feeder(command.fed)) as feeder:
        try:
            feeder.step()
            channel.send(Ready())
            _carry(channel, consumer, feeder, command)
        except HarmonicError as problem:
            raise PluginError("harmonicio", "bridge", str(problem)) from problem


def _carry(channel: Channel[Bridging], consumer: Consumer, feeder: Feeder, command: Bridging) -> None:
    """Read and offer until the channel ends (EOFError); nothing more is read while there is no credit."""
    waiting: Sequence[bytes] = ()
    looked, spans = 0.0, _start_recorder(command, feeder)
    while True:
        if waiting:
            time.sleep(_PAUSE_S)
            spans.lap("waiting", at=(now := time.monotonic()))
        else:
            spans.begin_wait()
            waiting = consumer.take(command.most, _PAUSE_S if feeder.unacked else _TIMEOUT_S)
            spans.end_wait(at=(now := time.monotonic()))
        feeder.step(now)
        if waiting:
            waiting = waiting[feeder.offer(waiting) :]
            spans.lap("serialize")
        if now > looked + _POLL_INTERVAL_S:
            looked = now
            channel.receive(timeout=0)
            for report in report_idle(spans):
                channel.send(report)


def _start_recorder(command: Bridging, feeder: Feeder) -> SpanRecorder | NoRecorder:
    if not command.traced:
        return NoRecorder()
    spans = SpanRecorder(f"bridge {command.member}", "bridge")
    feeder.observer = FrameSpans(spans)
    return spans


if __name__ == "__main__":
    main()
