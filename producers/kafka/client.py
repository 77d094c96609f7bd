"""The two libraries that can write to Kafka, behind one face; and the plainest loop around each, to measure the load against."""

import logging
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from confluent_kafka import Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.producer.future import FutureRecordMetadata

from bench.errors import PluginError
from bench.model.message_codec import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.services import credentials
from bench.workload.batch_writer import Filler
from bench.workload.rate_meter import RateMeter, stamp

logger = logging.getLogger(__name__)

_BY_KEY = -1
"""The partition that leaves the choice to the client."""
TIMEOUT = 30.0
"""Seconds after which Kafka's answer is not waited for any more, and an unconfirmed message has failed."""


class Client(Protocol):
    """One of the two libraries that can write to Kafka."""

    def waiting(self) -> int:
        """How many messages it has accepted and Kafka has neither confirmed nor refused; never too few."""

    def failed(self) -> int: ...

    def write(self, messages: Sequence[bytes], partition: int) -> None: ...

    def write_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], partition: int) -> None:
        """The same for messages in two pieces."""

    def write_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> None:
        """Each to the partition of its key, which is the one that Kafka's own client would choose."""

    def close(self) -> None: ...


def client_of(endpoint: Endpoint) -> Client:
    """The library that the endpoint's settings ask for, connected."""
    return (KafkaPython if endpoint.client["client"] == "kafka-python" else Confluent)(endpoint)


class Confluent:
    """confluent-kafka (librdkafka), without a callback for each message.

    Its length is the messages that wait, and events of its own that no `poll` has served yet: so it is polled first. The
    callback is for errors only, which the library sees to without running any Python.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._topic, self._failed = endpoint.name, 0
        self._memory, self._laid = np.empty(0, dtype=np.uint8), memoryview(b"")
        errors_only = {
            "delivery.report.only.error": True,
            "on_delivery": self._count_failure,
            "throttle_cb": _warn_of_quota,
        }
        self._producer = Producer({**configuration(endpoint), **errors_only}, logger=logger)
        self._producer.list_topics(self._topic, timeout=TIMEOUT)

    def waiting(self) -> int:
        self._producer.poll(0)
        return len(self._producer)

    def failed(self) -> int:
        return self._failed

    def write(self, messages: Sequence[bytes], partition: int) -> None:
        self._write([{"value": message} for message in messages], partition)

    def write_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> None:
        self._write([{"value": message, "key": key} for message, key in zip(messages, keys, strict=True)], _BY_KEY)

    def write_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], partition: int) -> None:
        """The library copies what it takes: so one memory, in which the filler lies, is enough for all, and stays in a cache."""
        for head, rest in zip(heads, fillers, strict=True):
            self._lay(rest)
            self._head[:] = head
            size = HEADER_BYTES + len(rest)
            message = self._memory if size == len(self._memory) else self._memory[:size]
            self._producer.produce(self._topic, message, partition=partition)  # type: ignore[arg-type]  # any buffer will do

    def _write(self, messages: list[dict[str, bytes]], partition: int) -> None:
        taken = self._producer.produce_batch(self._topic, messages, partition=partition)
        if taken != len(messages):
            raise PluginError(
                "kafka", "send", f"the client took {taken} of {len(messages)} messages although its queue had room"
            )

    def _lay(self, rest: Filler) -> None:
        """Have a filler, or the longer one that it is the beginning of, in the memory behind a header's place."""
        whole = rest.obj if isinstance(rest, memoryview) else rest
        if whole is not self._laid.obj:
            self._laid = memoryview(whole)
            self._memory = np.empty(HEADER_BYTES + len(self._laid), dtype=np.uint8)
            self._memory[HEADER_BYTES:] = self._laid
            self._head = self._memory[:HEADER_BYTES].data

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)

    def _count_failure(self, error: object, _: object) -> None:
        if self._failed == 0:
            logger.warning("Kafka refused a message: %s", error)
        self._failed += 1


class KafkaPython:
    """kafka-python, whose messages are futures; those of a partition are done in their order."""

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
            request_timeout_ms=int(TIMEOUT * 1000 / 2),
            delivery_timeout_ms=int(TIMEOUT * 1000),
            **credentials.for_kafka_python(client),
        )
        self._producer.partitions_for(self._topic)  # from now on it need not wait for metadata

    def waiting(self) -> int:
        for pending in self._pending:
            while pending and pending[0].is_done:
                self._failed += pending.popleft().failed()
        return sum(len(pending) for pending in self._pending)

    def failed(self) -> int:
        return self._failed

    def write(self, messages: Sequence[bytes], partition: int) -> None:
        try:
            sent = [self._producer.send(self._topic, message, partition=partition) for message in messages]
        except KafkaError as problem:
            raise PluginError("kafka", "send", f"{problem!r}") from problem
        self._pending[partition].extend(sent)

    def write_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], partition: int) -> None:
        self.write([head + rest for head, rest in zip(heads, fillers, strict=True)], partition)

    def write_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> None:
        try:
            sent = [
                self._producer.send(self._topic, message, key=key) for message, key in zip(messages, keys, strict=True)
            ]
        except KafkaError as problem:
            raise PluginError("kafka", "send", f"{problem!r}") from problem
        self._pending[-1].extend(sent)

    def close(self) -> None:
        self._producer.close(timeout=2)


def configuration(endpoint: Endpoint) -> dict[str, str | int | float | bool]:
    """What librdkafka is told; nothing of it depends on how it is called."""
    client = endpoint.client
    return {
        "bootstrap.servers": endpoint.address,
        "acks": client["acks"],
        "enable.idempotence": client["acks"] == "all",
        "linger.ms": float(client["linger"]) * 1000,
        "batch.size": client["batch"],
        "compression.type": client["compression"],
        "message.max.bytes": client["largest"],
        "message.timeout.ms": int(TIMEOUT * 1000),
        "queue.buffering.max.messages": 10**7,  # we bound the queue, so that what is taken is always the first part
        "queue.buffering.max.kbytes": 2**31 - 1,
        "partitioner": "murmur2_random",  # of keys, as Kafka's own client
        **credentials.for_librdkafka(client),
    }


def _warn_of_quota(event: object) -> None:
    """A quota of the broker slows this client down: what is measured then is the quota."""
    logger.warning("Kafka's quota throttles the load: %s", event)


def bare(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path, *, stamped: bool = True) -> None:
    """The plainest loop of confluent-kafka that confirms: no Locust, no schedule; one `produce` a message, with number and time."""
    producer = Producer({**configuration(endpoint), "delivery.report.only.error": True}, logger=logger)
    most, some = int(endpoint.client["waiting"]), max(1, min(1000, 4 * 10**6 // len(message)))
    topic, parts, count, filler = endpoint.name, endpoint.parts, 0, message[HEADER_BYTES:]
    while meter.keep_measuring(count - len(producer)):
        if len(producer) + some <= max(some, most):
            for number in range(count, count + some):
                producer.produce(topic, stamp(number) + filler if stamped else message, partition=number % parts)
            count += some
            producer.poll(0)
        else:
            producer.poll(0.001)
    producer.purge()
    producer.flush(1)


def bare_batch(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path) -> None:
    """The same with `produce_batch` of a list that is made once: the client's own limit, which no real data comes to."""
    producer = Producer({**configuration(endpoint), "delivery.report.only.error": True}, logger=logger)
    most, some = int(endpoint.client["waiting"]), max(1, min(4096, 4 * 10**6 // len(message)))
    batch, count, turn = [{"value": message}] * some, 0, 0
    while meter.keep_measuring(count - len(producer)):
        if len(producer) + some <= max(some, most):
            count += producer.produce_batch(endpoint.name, batch, partition=turn % endpoint.parts)
            turn += 1
            producer.poll(0)
        else:
            producer.poll(0.001)
    producer.purge()
    producer.flush(1)
