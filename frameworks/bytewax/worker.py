"""A process of the dataflow: reads some partitions, processes their messages, and reports. Runs in Bytewax's Python."""

import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any

import bytewax.operators as op
from bytewax.connectors.kafka import BYTEWAX_CONSUMER_LAG_GAUGE, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from msgspec import Struct

from bench.errors import PluginError
from bench.system.child_main import serve_command
from bench.system.ipc import Channel
from bench.workload.client_statistics import StatisticsSampler
from bench.workload.delivery_counts import ProcessingReport, merge_reports
from bench.workload.processing import report_events
from frameworks.bytewax.commands import PartitionOpened, RunDataflow

REPORT_INTERVAL_S = 0.05
BROKER_TIMEOUT_S = 10.0
READER = {
    "fetch.message.max.bytes": 16 * 2**20,
    "fetch.max.bytes": 64 * 2**20,
    "receive.message.max.bytes": 2**29,
    "queued.max.messages.kbytes": 64 * 2**10,
    "fetch.queue.backoff.ms": 10,  # as the harness's own readers: the default of 1 s makes a full queue pause for long
}

_waiting: deque[Struct] = deque()
"""Messages to the harness; only the thread that owns the channel sends them."""


class _Source(KafkaSource):  # type: ignore[misc]  # Bytewax is not installed where types are checked
    """Bytewax's own source, which tells that a partition is open."""

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Any:
        part = super().build_part(step_id, for_part, resume_state)
        _waiting.append(PartitionOpened())
        return part


class _Lag:
    """The gauge of each partition that Bytewax's own source renews every second."""

    def statistics(self) -> Mapping[str, float]:
        """Return the messages of this process's partitions that it has not taken; empty before Bytewax knows.

        Bytewax subtracts its position of now from an end that the broker told a moment ago, which may be the smaller.
        """
        samples = [sample for metric in BYTEWAX_CONSUMER_LAG_GAUGE.collect() for sample in metric.samples]
        found = [max(0.0, sample.value) for sample in samples]
        return {"lag_messages": sum(found)} if found else {}


class _Sink(DynamicSink[ProcessingReport]):  # type: ignore[misc]
    def build(self, step_id: str, worker_index: int, worker_count: int) -> "_SinkPart":  # noqa: ARG002
        return _SinkPart()


class _SinkPart(StatelessSinkPartition[ProcessingReport]):  # type: ignore[misc]
    def write_batch(self, items: list[ProcessingReport]) -> None:
        _waiting.extend(items)


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(RunDataflow, _run)


def _run(channel: Channel[RunDataflow], command: RunDataflow) -> None:
    _check_broker(command)
    lag = StatisticsSampler(_Lag() if command.work.traced else None, f"process {command.process}")
    Thread(target=_serve, args=(channel, lag), daemon=True, name="channel").start()
    scaling: dict[str, Any] = {}
    if command.addresses:
        scaling = {"process_id": command.process, "addresses": list(command.addresses)}
    cli_main(_make_dataflow(command), **scaling)


def _check_broker(command: RunDataflow) -> None:
    """Raise PluginError where no broker answers; Bytewax would wait for one without an end."""
    settings: dict[str, Any] = {"bootstrap.servers": command.brokers} | command.client
    try:
        AdminClient(settings).list_topics(command.topic, timeout=BROKER_TIMEOUT_S)
    except KafkaException as problem:
        reason = f"{command.topic} cannot be read at {command.brokers}: {problem}"
        raise PluginError("bytewax", "open", reason) from problem


def _make_dataflow(command: RunDataflow) -> Dataflow:
    """Return the dataflow: Kafka's messages, the work, reports."""

    def process(messages: list[KafkaSourceMessage]) -> list[ProcessingReport]:
        return [report for values in _group_values(messages) for report in command.work.process(values)]

    flow = Dataflow("stream_bench")
    source = _Source(
        command.brokers.split(","), [command.topic], add_config=READER | command.client, batch_size=command.most
    )
    messages = op.input("kafka", flow, source)
    op.output("reports", op.flat_map_batch("work", messages, process), _Sink())
    return flow


def _group_values(messages: list[KafkaSourceMessage]) -> Iterable[list[bytes]]:
    """Return the values of each partition in its order: Timely Dataflow may join batches of several partitions."""
    values: dict[int, list[bytes]] = {}
    for message in messages:
        values.setdefault(message.partition, []).append(message.value)
    return values.values()


def _serve(channel: Channel[RunDataflow], lag: StatisticsSampler) -> None:
    """Send what waits, again and again, until the harness closes the channel; then end this process at once."""
    try:
        while True:
            sending = [_waiting.popleft() for _ in range(len(_waiting))]
            for message in (one for one in sending if not isinstance(one, ProcessingReport)):
                channel.send(message)
            reports = merge_reports([one for one in sending if isinstance(one, ProcessingReport)])
            for report in [*reports, *report_events(lag.take())]:
                channel.send(report)
            began = time.monotonic()
            channel.receive(timeout=REPORT_INTERVAL_S)
            time.sleep(max(0.0, REPORT_INTERVAL_S - (time.monotonic() - began)))
    except (EOFError, OSError):
        os._exit(0)  # the dataflow has no end of its own, and no state that would have to be kept


if __name__ == "__main__":
    main()
