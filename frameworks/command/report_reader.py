"""The process that counts what a program reports: records from connections or from a topic, until its channel ends.

docs/any-program.md describes both.
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from bench.config.address import Address
from bench.model.message_header import Bytes
from bench.model.report_record import LONG_BYTES, SHORT_BYTES
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.system.child_main import serve_command
from bench.system.ipc import Channel
from bench.workload.delivery_counts import ProcessingReport, merge_reports
from bench.workload.processing import MessageProcessor
from frameworks.command.connections import Connections

REPORT_INTERVAL_S = 0.05
"""Between two reports at high rates; at low ones they are sent at once."""
MAX_MESSAGES = 20_000
"""Of a topic that are taken at once."""


class ReadReports(Struct, frozen=True, tag="reading"):
    """A command, sent once: count what is reported."""

    work: MessageProcessor
    token: str
    listen: str
    """host:port; port 0 for any"""
    results: Endpoint | None
    """the topic with the reports; None where they come over connections"""


class Listening(Struct, frozen=True, tag="listening"):
    """A reply: reports are counted from now on."""

    address: str
    """host:port; empty where they come from a topic"""


class Connected(Struct, frozen=True, tag="connected"):
    """A message: a program has connected and said the token."""


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(ReadReports, _read)


def _read(channel: Channel[ReadReports], reading: ReadReports) -> None:
    if reading.results is not None:
        _read_topic(channel, reading.work, reading.results)
    else:
        _read_connections(channel, reading)


def _read_topic(channel: Channel[ReadReports], work: MessageProcessor, results: Endpoint) -> None:
    reports = _Reports(channel)
    with contextlib.closing(registry.open_consumer(results)) as consumer:
        channel.send(Listening(""))
        while True:
            batches = group_records(consumer.take(MAX_MESSAGES, REPORT_INTERVAL_S))
            reports.add([report for records in batches for report in work.count_records(records)])
            channel.receive(timeout=0)  # EOFError ends it


def _read_connections(channel: Channel[ReadReports], reading: ReadReports) -> None:
    reports = _Reports(channel)
    with Connections(Address.parse(reading.listen), reading.token.encode()) as connections:
        channel.send(Listening(connections.address))
        programs = 0
        while True:
            batches = list(connections.receive(REPORT_INTERVAL_S))
            for _ in range(connections.programs - programs):
                channel.send(Connected())
            programs = connections.programs
            reports.add([report for records in batches for report in reading.work.count_records(records)])
            channel.receive(timeout=0)  # EOFError ends it


def group_records(messages: Sequence[bytes]) -> Iterator[Bytes]:
    """Yield the records in the messages of a topic, those of one size together.

    A message of another size yields a record that cannot be read, and so counts as corrupted.
    """
    for size in (SHORT_BYTES, LONG_BYTES):
        records = [message for message in messages if len(message) == size]
        if records:
            yield np.frombuffer(b"".join(records), dtype=np.uint8).reshape(-1, size)
    wrong = sum(len(message) not in (SHORT_BYTES, LONG_BYTES) for message in messages)
    if wrong:
        yield np.zeros((wrong, SHORT_BYTES), dtype=np.uint8)


class _Reports:
    """The reports that are not sent yet; those of one run are merged."""

    def __init__(self, channel: Channel[ReadReports]) -> None:
        self._channel, self._waiting, self._sent = channel, list[ProcessingReport](), 0.0

    def add(self, reports: Iterable[ProcessingReport]) -> None:
        """Add reports; send them when the last ones are long enough ago, or nothing new has come."""
        before = len(self._waiting)
        self._waiting += reports
        idle = len(self._waiting) == before
        if self._waiting and (idle or time.monotonic() >= self._sent + REPORT_INTERVAL_S):
            for report in merge_reports(self._waiting):
                self._channel.send(report)
            self._waiting, self._sent = [], time.monotonic()


if __name__ == "__main__":
    main()
