"""Reads a Kafka topic: a fixed share of its partitions, from their ends, without a consumer group."""

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from bench.errors import PluginError
from bench.plugins.plugin import ConsumerPlugin
from bench.plugins.protocols import Endpoint
from consumers.partition_batches import take_batch
from producers.kafka import security
from producers.kafka.statistics import ClientStatistics

logger = logging.getLogger(__name__)

TIMEOUT_S = 30.0
"""After which Kafka's answer is not waited for any more."""
LEADER_INTERVAL_S = 0.1
_WITHOUT_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
"""Answers of a broker about a partition that was created a moment ago."""


class KafkaConsumer:
    """A reader of the partitions whose number, modulo the number of members, is the member's.

    Args:
        endpoint: what a source has opened.
        member: number of this reader, from 0.
        members: readers that share the endpoint.
    """

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:
        self._batches: deque[list[bytes]] = deque()
        self._closed = False
        self._statistics = ClientStatistics()
        self._client = Client({**_configuration(endpoint), **self._statistics.configuration()}, logger=logger)
        try:
            shares = [TopicPartition(endpoint.name, part) for part in range(member, endpoint.parts, members)]
            for share in shares:
                share.offset = _end_offset(self._client, share)
            self._client.assign(shares)
        except KafkaException as problem:
            self.close()
            raise PluginError(
                "kafka", "open", f"{endpoint.name} cannot be read at {endpoint.address}: {problem}"
            ) from problem

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return up to `max_messages` messages of one part, as soon as there are any; none after `timeout` seconds.

        Raises:
            PluginError: Kafka gives an error instead of a message.
        """
        if not self._batches:
            self._batches.extend(_by_partition(self._client.consume(max_messages, timeout)))
        return take_batch(self._batches, max_messages)

    def statistics(self) -> Mapping[str, float]:
        """Return what the client said last, at most a second ago."""
        return self._statistics.values()

    def close(self) -> None:
        """Disconnect."""
        if not self._closed:
            self._closed = True
            self._client.close()


def _end_offset(client: Client, part: TopicPartition) -> int:
    """Return the offset after a partition's last message; wait for the leader, which a new one may not have yet."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            _, end = client.get_watermark_offsets(part, timeout=TIMEOUT_S)
        except KafkaException as problem:
            if problem.args[0].code() not in _WITHOUT_LEADER or time.monotonic() > deadline:
                raise
            time.sleep(LEADER_INTERVAL_S)
        else:
            return int(end)


def _configuration(endpoint: Endpoint) -> dict[str, security.Value]:
    """Return the configuration of a reader that never pauses and accepts messages of 10 MB and more."""
    return {
        **security.for_librdkafka(endpoint.client),
        "bootstrap.servers": endpoint.address,
        "group.id": "stream-bench",  # the client asks for one, and we never commit
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.message.max.bytes": 16 * 2**20,
        "fetch.max.bytes": 64 * 2**20,
        "receive.message.max.bytes": 2**29,
        "queued.max.messages.kbytes": 64 * 2**10,
        "fetch.queue.backoff.ms": 10,  # the default of 1 s makes it pause for as long whenever its queue was full
    }


def _by_partition(messages: Sequence[Message]) -> list[list[bytes]]:
    """Return the values of each partition, in its order."""
    found: dict[int | None, list[bytes]] = {}
    for message in messages:
        if message.error() is not None:
            raise PluginError("kafka", "take", str(message.error()))
        found.setdefault(message.partition(), []).append(message.value() or b"")
    return list(found.values())


plugin = ConsumerPlugin(open=KafkaConsumer)
