"""A worker process: reads its share of a source, processes it, and reports, until the harness closes its channel."""

import time
from contextlib import closing

from msgspec import Struct

from bench.plugins import registry
from bench.plugins.protocols import Consumer, Endpoint
from bench.system.child_main import serve_command
from bench.system.ipc import Channel, Ready
from bench.workload.client_statistics import StatisticsSampler
from bench.workload.delivery_counts import ProcessingReport, merge_reports
from bench.workload.processing import MessageProcessor, report_events, report_idle

REPORT_INTERVAL_S = 0.05
"""Between two reports at high rates; at low ones every batch is reported at once."""
TIMEOUT_S = 0.05
"""Seconds for which messages are waited for before the channel is looked at."""


class ReadSource(Struct, frozen=True, tag="reading"):
    """A command, sent once: process the member's share of an endpoint, in batches of at most `most` messages."""

    endpoint: Endpoint
    work: MessageProcessor
    member: int
    members: int
    most: int


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(ReadSource, _read)


def _read(channel: Channel[ReadSource], reading: ReadSource) -> None:
    with closing(registry.open_consumer(reading.endpoint, reading.member, reading.members)) as consumer:
        channel.send(Ready())
        _work(channel, reading, consumer)


def _work(channel: Channel[ReadSource], reading: ReadSource, consumer: Consumer) -> None:
    """Take, process, report; EOFError ends it."""
    name = f"worker {reading.member}"
    spans = reading.work.record_spans(name)
    statistics = StatisticsSampler(consumer if reading.work.traced else None, name)
    reports: list[ProcessingReport] = []
    reported = 0.0
    while True:
        spans.begin_wait()
        messages = consumer.take(reading.most, TIMEOUT_S)
        spans.end_wait()
        if messages:
            reports += reading.work.process(messages)
        now = time.monotonic()
        if not messages and not reports:
            reports = report_idle(spans)
        if not messages or now >= reported + REPORT_INTERVAL_S:
            for report in [*merge_reports(reports), *report_events(statistics.take())]:
                channel.send(report)
            channel.receive(timeout=0)
            reports, reported = [], now
            spans.lap("reporting")


if __name__ == "__main__":
    main()
