"""The two libraries that can write to Kafka, behind one protocol."""

import logging
import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from confluent_kafka import Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from bench.errors import PluginError
from bench.model.message_header import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.workload.batch_writer import Filler
from producers.kafka import security
from producers.kafka.statistics import ClientStatistics

logger = logging.getLogger(__name__)


_BY_KEY = -1
"""The partition that leaves the choice to the client."""


TIMEOUT_S = 30.0
"""Seconds after which Kafka's answer is not waited for any more, and an unconfirmed message has failed."""


MAX_ARRAYS = 128
"""Copies of fillers that are kept with space for a header; more than a cell of large messages has."""

_Array = np.ndarray[Any, np.dtype[np.uint8]]


class Client(Protocol):
    """A library that can write to Kafka; what writes raises PluginError when the library does not take it."""

    def waiting(self) -> int:
        """Return the messages that it has accepted and Kafka has neither confirmed nor refused; never too few."""

    def failed(self) -> int:
        """Return the messages that Kafka finally refused."""

    def write(self, messages: Sequence[bytes], partition: int) -> None:
        """Write messages to a partition."""

    def write_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], partition: int) -> None:
        """Write messages in two pieces to a partition; message i is heads[i] + fillers[i]."""

    def write_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """Write each message to the partition of its key, which is the one that Kafka's own client would choose."""

    def statistics(self) -> Mapping[str, float]:
        """Return what the library says of itself: messages that wait, seconds in its queue and until an answer."""

    def close(self) -> None:
        """Disconnect; what waits is given up."""


def client_of(endpoint: Endpoint) -> Client:
    """Return the library that the endpoint's settings ask for, connected."""
    return (KafkaPython if endpoint.client["client"] == "kafka-python" else Confluent)(endpoint)


class Confluent:
    """The library confluent-kafka (librdkafka), without a callback for each message.

    Its length is the messages that wait, and events of its own that no `poll` has served yet: so it is polled
    first. The callback is for errors only, which the library handles without running any Python.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._topic, self._failed = endpoint.name, 0
        self._arrays: dict[int, tuple[bytes, _Array, memoryview]] = {}
        errors_only = {
            "delivery.report.only.error": True,
            "on_delivery": self._count_failure,
            "throttle_cb": _warn_of_quota,
        }
        self._statistics = ClientStatistics()
        self._producer = Producer(
            {**configuration(endpoint), **errors_only, **self._statistics.configuration()}, logger=logger
        )
        self._producer.list_topics(self._topic, timeout=TIMEOUT_S)

    def waiting(self) -> int:
        """Return the messages that are neither confirmed nor refused."""
        self._producer.poll(0)
        return len(self._producer)

    def failed(self) -> int:
        """Return the messages that Kafka refused."""
        return self._failed

    def write(self, messages: Sequence[bytes], partition: int) -> None:
        """Write messages to a partition.

        Raises:
            PluginError: the client does not take them all.
        """
        self._write([{"value": message} for message in messages], partition)

    def write_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """Write messages to the partitions of their keys.

        Raises:
            PluginError: the client does not take them all.
        """
        self._write([{"value": message, "key": key} for message, key in zip(messages, keys, strict=True)], _BY_KEY)

    def write_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], partition: int) -> None:
        """Write messages in two pieces.

        The library copies what it takes: so one array for each filler is enough, in which the filler lies already.
        """
        for head, rest in zip(heads, fillers, strict=True):
            if isinstance(rest, bytes):
                _, message, place = self._arrays.get(id(rest)) or self._lay(rest)
                place[:] = head
                self._producer.produce(self._topic, message, partition=partition)  # type: ignore[arg-type]  # any buffer will do
            else:  # of mixed sizes: a slice
                self._producer.produce(self._topic, head + rest, partition=partition)

    def _write(self, messages: list[dict[str, bytes]], partition: int) -> None:
        taken = self._producer.produce_batch(self._topic, messages, partition=partition)
        if taken != len(messages):
            raise PluginError(
                "kafka", "send", f"the client took {taken} of {len(messages)} messages although its queue had space"
            )

    def _lay(self, rest: bytes) -> tuple[bytes, _Array, memoryview]:
        """Return a filler, a new array of it behind space for a header, and that space."""
        memory = np.empty(HEADER_BYTES + len(rest), dtype=np.uint8)
        memory[HEADER_BYTES:] = np.frombuffer(rest, dtype=np.uint8)
        if len(self._arrays) >= MAX_ARRAYS:
            self._arrays.clear()
        self._arrays[id(rest)] = rest, memory, memory[:HEADER_BYTES].data
        return self._arrays[id(rest)]

    def statistics(self) -> Mapping[str, float]:
        """Return what the library said last, at most a second ago."""
        return self._statistics.values()

    def close(self) -> None:
        """Disconnect; what waits is given up.

        The producer is destroyed here. It refers to this object by its callback, so the garbage collector would destroy
        it otherwise, in any thread, which can crash the process (confluent-kafka-python, issue 1761).
        """
        self._producer.purge()
        self._producer.flush(1)
        del self._producer

    def _count_failure(self, error: object, _: object) -> None:
        if self._failed == 0:
            logger.warning("Kafka refused a message: %s", error)
        self._failed += 1


class KafkaPython:
    """The library kafka-python, whose messages are futures; those of a partition complete in their order."""

    def __init__(self, endpoint: Endpoint) -> None:
        client = endpoint.client
        self._topic, self._failed = endpoint.name, 0
        self._pending: list[deque[FutureRecordMetadata]] = [
            deque() for _ in range(endpoint.parts + 1)
        ]  # the last: with keys
        self._producer = KafkaProducer(
            bootstrap_servers=endpoint.address.split(","),
            acks=client["acks"],
            enable_idempotence=client["acks"] == "all",
            linger_ms=float(client["linger"]) * 1000,
            batch_size=client["batch"],
            compression_type=None if client["compression"] == "none" else client["compression"],
            max_request_size=client["largest"],
            request_timeout_ms=int(TIMEOUT_S * 1000 / 2),
            delivery_timeout_ms=int(TIMEOUT_S * 1000),
            **security.for_kafka_python(client),
        )
        self._producer.partitions_for(self._topic)  # from now on it need not wait for metadata

    def waiting(self) -> int:
        """Return the messages that are neither confirmed nor refused."""
        for pending in self._pending:
            while pending and pending[0].is_done:
                self._failed += pending.popleft().failed()
        return sum(len(pending) for pending in self._pending)

    def failed(self) -> int:
        """Return the messages that Kafka refused."""
        return self._failed

    def write(self, messages: Sequence[bytes], partition: int) -> None:
        """Write messages to a partition.

        Raises:
            PluginError: the client refuses one.
        """
        try:
            sent = [self._producer.send(self._topic, message, partition=partition) for message in messages]
        except KafkaError as problem:
            raise PluginError("kafka", "send", f"{problem!r}") from problem
        self._pending[partition].extend(sent)

    def write_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], partition: int) -> None:
        """Write messages in two pieces to a partition.

        Raises:
            PluginError: the client refuses one.
        """
        self.write([head + rest for head, rest in zip(heads, fillers, strict=True)], partition)

    def write_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """Write messages to the partitions of their keys.

        Raises:
            PluginError: the client refuses one.
        """
        try:
            sent = [
                self._producer.send(self._topic, message, key=key) for message, key in zip(messages, keys, strict=True)
            ]
        except KafkaError as problem:
            raise PluginError("kafka", "send", f"{problem!r}") from problem
        self._pending[-1].extend(sent)

    def statistics(self) -> Mapping[str, float]:
        """Return means of the last 30 s, as far as the library has any."""
        metrics = self._producer.metrics()["producer-metrics"]
        seconds = {"round_trip_s": "request-latency-avg", "queued_s": "record-queue-time-avg"}
        known = {name: float(metrics.get(metric, math.nan)) / 1e3 for name, metric in seconds.items()}
        return {name: value for name, value in known.items() if math.isfinite(value)}

    def close(self) -> None:
        """Disconnect; what waits is given up."""
        self._producer.close(timeout=2)


def configuration(endpoint: Endpoint) -> dict[str, str | int | float | bool]:
    """Return librdkafka's configuration for an endpoint."""
    client = endpoint.client
    return {
        "bootstrap.servers": endpoint.address,
        "acks": client["acks"],
        "enable.idempotence": client["acks"] == "all",
        "linger.ms": float(client["linger"]) * 1000,
        "batch.size": client["batch"],
        "compression.type": client["compression"],
        "message.max.bytes": client["largest"],
        "message.timeout.ms": int(TIMEOUT_S * 1000),
        "queue.buffering.max.messages": 10**7,  # we bound the queue, so that what is taken is always the first part
        "queue.buffering.max.kbytes": 2**31 - 1,
        "partitioner": "murmur2_random",  # of keys, as Kafka's own client
        **security.for_librdkafka(client),
    }


def _warn_of_quota(event: object) -> None:
    """Log that a quota of the broker slows this client down: the quota is measured then."""
    logger.warning("Kafka's quota throttles the load: %s", event)
