"""Messages through Kafka: a fresh topic for each cell, its partitions written in turn, and counted when Kafka confirms them."""

import contextlib
import importlib.util
import secrets
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Literal

from confluent_kafka import KafkaException
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.errors import KafkaError
from msgspec import Meta, Struct

from bench.analysis.bounds import Copies, kafka_copies
from bench.config.site import Site
from bench.errors import PluginError, UsageError
from bench.model.cell import Cell
from bench.plugins.client_lint import ConfigWarning, of_acks, of_compression, of_limit
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.services import credentials
from bench.units import Seconds, Size, size_text
from bench.workload.batch_writer import Filler
from producers.kafka.client import TIMEOUT, Client, bare, bare_batch, client_of
from producers.kafka.perf_test import perf_test
from producers.kafka.server import Broker, KafkaServer

STORES = True
KEYS = True
BASELINES = {
    "bare": bare,
    "bare-constant": partial(bare, stamped=False),
    "bare-batch": bare_batch,
    "kafka-producer-perf-test": perf_test,
}

BATCH_OVERHEAD = 2**16
"""Bytes that a batch may be larger than its only message."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic, and the client that writes to it."""

    client: Literal["confluent", "kafka-python"] = "confluent"
    partitions: Annotated[int, Meta(ge=1)] = 2
    replication: int = -1
    """copies of each partition; the broker's own choice when -1"""
    acks: Literal[0, 1, "all"] = 1
    linger: Seconds = Seconds(0.005)
    batch: Size = Size(10**6)
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    queue: Size = Size(64 * 10**6)
    """that may wait in the client; with what lies in it, a slower Kafka is noticed within about a second"""
    queue_messages: int = 250_000
    largest: Size | None = None
    """batch, and so message, that the embedded broker takes; left out: as large as the cell needs"""
    message_limit: Size | None = None
    """message.max.bytes of client and topic; follows from the message size when left out"""
    retained: Size = Size(8 * 10**9)
    """that a topic keeps; on an embedded Kafka a quarter of the free disk at most"""


class Source:
    """A topic for each cell, on the site's Kafka or an embedded one that serves all cells of a run."""

    def __init__(self, settings: Settings) -> None:
        if settings.client == "kafka-python" and importlib.util.find_spec("crc32c") is None:
            raise UsageError(
                "settings.kafka.client: kafka-python is limited to about 8 MB/s without the package 'crc32c';"
                ' run: pip install "stream-bench[kafka]"'
            )
        self._settings = settings
        self._server: KafkaServer | None = None
        self._bootstrap, self._topic = "", ""
        self._admission: dict[str, credentials.Value] = {}

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  any size and cost will do
        if self._settings.acks == 0:
            return "with acks 0 Kafka confirms nothing, so that nobody could say what was sent; use 1 or all"
        if self._settings.client == "kafka-python" and self._settings.compression not in ("none", "gzip"):
            return f"kafka-python compresses with gzip only here, not with {self._settings.compression}"
        if self._settings.largest is not None and self._largest(cell) > self._settings.largest:
            needed, taken = size_text(self._largest(cell)), size_text(float(self._settings.largest))
            return f"a batch may have {needed} (settings.kafka.batch, or one message); settings.kafka.largest allows {taken}"
        return None

    def copies(self, site: Site) -> Copies:
        """What Kafka makes of each byte, read once, on the brokers that the site names; its own choice of copies is one."""
        brokers = site.kafka.bootstrap.count(",") + 1 if site.kafka is not None else 1
        return kafka_copies(max(1, self._settings.replication), brokers=brokers)

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        self._bootstrap = env.site.kafka.bootstrap if env.site.kafka is not None else self._embedded(cell, env)
        self._admission = credentials.of_clients(env.site.kafka.security if env.site.kafka is not None else None)
        topic = {
            "num_partitions": self._settings.partitions,
            "replication_factor": self._settings.replication,
            "configs": self._limits(cell, env),
        }
        name = f"{cell.name}-{secrets.token_hex(4)}"
        with self._admin("open") as admin:
            admin.create_topics({name: topic}, timeout_ms=int(TIMEOUT * 1000), wait_for_metadata=True)
        self._topic = name
        return Endpoint(
            "kafka", self._bootstrap, name, self._settings.partitions, client=self._client(cell) | self._admission
        )

    def clear(self) -> None:
        """Let Kafka delete what is in the topic; the partitions go on counting."""
        parts = [TopicPartition(self._topic, part) for part in range(self._settings.partitions)]
        with self._admin("clear") as admin:
            ends = admin.list_partition_offsets(dict.fromkeys(parts, OffsetSpec.LATEST))
            admin.delete_records({part: end.offset for part, end in ends.items()}, timeout_ms=int(TIMEOUT * 1000))

    def close(self) -> None:
        topic, self._topic = self._topic, ""
        if topic and (self._server is None or self._server.alive()):
            with (
                contextlib.suppress(PluginError),
                self._admin("close") as admin,
            ):  # a Kafka that is gone has no topic to delete
                admin.delete_topics([topic], timeout_ms=5000)

    @contextlib.contextmanager
    def _admin(self, verb: str) -> Iterator[KafkaAdminClient]:
        """A connection for the length of a verb; one that stood for longer would complain aloud when Kafka dies."""
        try:
            client = KafkaAdminClient(
                bootstrap_servers=self._bootstrap.split(","),
                bootstrap_timeout_ms=5000,
                **credentials.for_kafka_python(self._admission),
            )
            with contextlib.closing(client) as admin:
                yield admin
        except KafkaError as problem:
            raise PluginError("kafka", verb, f"{self._bootstrap} answers {problem!r}") from problem

    def _embedded(self, cell: Cell, env: RunEnvironment) -> str:
        """Where a Kafka of ours stands that takes the cell's messages."""
        broker = Broker(
            message_bytes=int(self._settings.largest or max(Broker().message_bytes, 2 * cell.largest_bytes))
        )
        self._server = env.cached_resource(
            ("kafka", broker),
            lambda: KafkaServer.deployed(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
        )
        return self._server.bootstrap

    def _limits(self, cell: Cell, env: RunEnvironment) -> dict[str, str]:
        retained = int(self._settings.retained)
        if self._server is not None:
            retained = min(retained, shutil.disk_usage(env.data).free // 4)
        each = max(1, retained // self._settings.partitions)
        return {"max.message.bytes": str(self._largest(cell)), "retention.ms": "3600000", "retention.bytes": str(each)}

    def _client(self, cell: Cell) -> dict[str, str | int | float | bool]:
        settings = self._settings
        return {
            "client": settings.client,
            "acks": settings.acks,
            "linger": float(settings.linger),
            "batch": int(settings.batch),
            "compression": settings.compression,
            "largest": self._largest(cell),
            "waiting": max(2, min(settings.queue_messages, int(settings.queue) // cell.message_bytes)),
        }

    def _largest(self, cell: Cell) -> int:
        """Bytes of the largest batch."""
        return (
            int(self._settings.message_limit or 0)
            or max(int(self._settings.batch), cell.largest_bytes) + BATCH_OVERHEAD
        )


def config_warnings(settings: Settings, message_bytes: int, entropy: float) -> list[ConfigWarning]:
    """What is wrong with these settings for messages of that size and entropy."""
    limit = settings.message_limit
    return [
        *of_acks(settings.acks, "settings.kafka.acks"),
        *(of_limit(int(limit), message_bytes, "settings.kafka.message_limit") if limit is not None else ()),
        *of_compression(settings.compression, entropy, "settings.kafka.compression"),
    ]


class Sender:
    """Writes message i to partition i modulo their number, or to that of its key; what it takes its queue has room for.

    Confirmed is what was taken, minus what waits, minus what failed: exact once nothing waits, and never too many before.
    """

    gathers_from = 32_768

    def __init__(self) -> None:
        self._client: Client | None = None
        self._taken = self._confirmed = 0

    def open(self, endpoint: Endpoint) -> None:
        try:
            self._client = client_of(endpoint)
        except (KafkaError, KafkaException) as problem:
            raise PluginError("kafka", "open", f"no connection to {endpoint.address}: {problem}") from problem
        self._parts, self._most = endpoint.parts, int(endpoint.client["waiting"])

    def send(self, messages: Sequence[bytes]) -> int:
        assert self._client is not None, "open comes first"
        offered = messages[: self._room()]
        for part, turns in self._turns(len(offered)):
            self._client.write(offered[turns], part)
        self._taken += len(offered)
        return len(offered)

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        assert self._client is not None, "open comes first"
        count = min(len(heads), self._room())
        for part, turns in self._turns(count):
            self._client.write_pieces(heads[:count][turns], fillers[:count][turns], part)
        self._taken += count
        return count

    def send_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> int:
        assert self._client is not None, "open comes first"
        count = min(len(messages), self._room())
        if count:
            self._client.write_keyed(messages[:count], keys[:count])
        self._taken += count
        return count

    def _room(self) -> int:
        assert self._client is not None, "open comes first"
        return max(0, self._most - self._client.waiting())

    def _turns(self, count: int) -> Iterator[tuple[int, slice]]:
        """Which of the next messages go to which partition; only partitions that get any."""
        for part in range(self._parts):
            first = (part - self._taken) % self._parts
            if first < count:
                yield part, slice(first, None, self._parts)

    def confirmed(self) -> tuple[int, int]:
        assert self._client is not None, "open comes first"
        waiting, failed = self._client.waiting(), self._client.failed()
        self._confirmed = max(self._confirmed, self._taken - waiting - failed)
        return self._confirmed, failed

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
