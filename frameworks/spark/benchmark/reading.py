"""Readers of a full topic: Spark with the harness's own Python stage, and the brokers' clients by themselves.

The clients read with a thread for each part.
"""

import contextlib
import time
from collections.abc import Callable
from statistics import median
from threading import Thread

from msgspec import Struct

from bench.errors import NotReadyError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.telemetry.cpu import CpuProbe
from bench.workload.delivery_counts import DeliveryCounts
from bench.workload.processing import MessageProcessor
from frameworks.full_topic import ENTROPY, PARTS
from frameworks.spark.adapter import SparkFramework, SparkSettings
from frameworks.spark.conf import Value

_READ_TIMEOUT_S = 120.0
"""Seconds that one reading may last."""
_AHEAD_BYTES, _AHEAD_MESSAGES = 64_000_000, 10_000
_TIMEOUT_MS = 20_000


class ReaderRate(Struct, frozen=True):
    """One reader of one source and size."""

    source: str
    message_bytes: int
    by: str
    """spark, or client: the broker's own"""
    hz: list[float]
    """messages/s of each turn"""
    core_seconds: dict[str, float]
    """a message, of the last turn: used by framework, source and harness"""
    exact: bool
    """whether each turn got every message once"""

    @property
    def median_hz(self) -> float:
        """Return the median, in messages/s."""
        return median(self.hz)


class Turn(Struct, frozen=True):
    """The result of one reading of everything."""

    hz: float
    core_seconds: dict[str, float]
    exact: bool


def by_spark(endpoint: Endpoint, size: int, count: int, env: RunEnvironment, settings: SparkSettings) -> Turn:
    """Read everything with a query of its own.

    Timed from when the query looks at the source to the end of its last batch.
    """
    framework = SparkFramework(settings)
    cell, work = Cell("spark", endpoint.source, size, 0.0), MessageProcessor(size, ENTROPY)
    probe, counts = CpuProbe(env.supervisor), DeliveryCounts()
    with contextlib.closing(framework.open(cell, endpoint, work, env)) as running:
        before = probe.snapshot()
        ended = before.at
        while counts.count + counts.corrupted < count:
            for report in running.poll():
                counts.add(report)
                ended = report.at
            if time.monotonic() > before.at + _READ_TIMEOUT_S:
                raise NotReadyError(
                    f"spark/{endpoint.source} has read {counts.count} of {count} messages within {_READ_TIMEOUT_S:g} s"
                )
            time.sleep(0.01)
        used = probe.snapshot().since(before)
    producers = dict.fromkeys(range(PARTS), count // PARTS) if endpoint.source == "memory" else {0: count}
    each = {"framework": used.framework / count, "source": used.source / count, "harness": used.harness / count}
    return Turn(count / (ended - before.at), each, counts.reconcile(producers) == (0, 0))


def by_client(endpoint: Endpoint, size: int, count: int, env: RunEnvironment) -> Turn:
    """Read everything with the broker's client, each message as bytes of Python, and look at none of them."""
    drain, found = _DRAINS[endpoint.source], [0] * PARTS

    def read(part: int) -> None:
        found[part] = drain(endpoint, part, size, count // PARTS)

    threads = [Thread(target=read, args=(part,), daemon=True) for part in range(PARTS)]
    probe = CpuProbe(env.supervisor)
    before = probe.snapshot()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_READ_TIMEOUT_S)
    used = probe.snapshot().since(before)
    each = {"framework": 0.0, "source": used.source / count, "harness": used.harness / count}
    return Turn(count / used.seconds, each, sum(found) == count * size)


def reader_options(endpoint: Endpoint, size: int, count: int, number: int) -> dict[str, Value]:
    """Return the options of a stream's reader that reads everything from the beginning."""
    if endpoint.source == "kafka":
        return {"startingOffsets": "earliest"}
    if endpoint.source == "pulsar":
        return {"startingPositions": "earliest", "subscription": f"turn-{number}"}
    return {"parts": PARTS, "count": count // PARTS, "size": size, "entropy": ENTROPY}


def _drain_kafka(endpoint: Endpoint, part: int, size: int, count: int) -> int:
    """Read a partition; return the bytes that came."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": endpoint.address,
            "group.id": "benchmark",
            "fetch.message.max.bytes": max(2**20, 2 * size),
            "queued.max.messages.kbytes": _AHEAD_BYTES // 1000,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(endpoint.name, part, 0)])
    total = found = 0
    deadline = time.monotonic() + _READ_TIMEOUT_S
    while found < count and time.monotonic() < deadline:
        values = [message.value() or b"" for message in consumer.consume(1000, 0.01) if message.error() is None]
        found, total = found + len(values), total + sum(map(len, values))
    consumer.close()
    return total


def _drain_pulsar(endpoint: Endpoint, part: int, size: int, count: int) -> int:
    """Read a partition; return the bytes that came."""
    import pulsar

    from producers.pulsar.connection import make_client

    client = make_client(endpoint.address, endpoint.client)
    ahead = max(1, min(_AHEAD_MESSAGES, _AHEAD_BYTES // size))
    name = f"{endpoint.name}-partition-{part}"
    reader = client.create_reader(name, pulsar.MessageId.earliest, receiver_queue_size=ahead)
    total = 0
    with contextlib.suppress(pulsar.Timeout):  # then the bytes do not add up
        for _ in range(count):
            total += len(reader.read_next(_TIMEOUT_MS).data())
    client.shutdown()
    return total


_DRAINS: dict[str, Callable[[Endpoint, int, int, int], int]] = {"kafka": _drain_kafka, "pulsar": _drain_pulsar}
