"""Kafka as a source: a topic for each cell, on the site's brokers or an embedded one."""

import contextlib
import importlib.util
import secrets
import shutil
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.errors import KafkaError
from msgspec import Meta, Struct
from msgspec.structs import replace

from bench.errors import PluginError, UsageError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import partitions
from bench.plugins.protocols import Endpoint
from bench.services.embedded_server import EmbeddedServer
from bench.units import Seconds, Size, size_text
from producers.kafka import security
from producers.kafka.client import TIMEOUT_S
from producers.kafka.server import KafkaBroker, start_kafka
from producers.kafka.site import KAFKA_SITE

BATCH_OVERHEAD = 2**16
"""Bytes that a batch may be larger than its only message."""
RESULTS_BYTES = 10**9
"""That a topic for results keeps, where they are read at once."""


class KafkaSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic, and the client that writes to it."""

    client: Literal["confluent", "kafka-python"] = "confluent"
    partitions: Annotated[int, Meta(ge=1)] | None = None
    """as many as the framework has cores, and two at least, when left out"""
    replication: int = -1
    """copies of each partition; the broker's own choice when -1"""
    acks: Literal[0, 1, "all"] = 1
    linger: Seconds = Seconds(0.005)
    batch: Size = Size(10**6)
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    queue: Size = Size(64 * 10**6)
    """bytes that may wait in the client; small enough that a slower broker is noticed within about a second"""
    queue_messages: int = 250_000
    largest: Size | None = None
    """largest batch, and so largest message, that the embedded broker accepts; as large as the cell needs when left
    out"""
    message_limit: Size | None = None
    """limit of client and topic (`message.max.bytes`); follows from the message size when left out"""
    retained: Size = Size(8 * 10**9)
    """bytes that a topic keeps; on an embedded Kafka a quarter of the free disk at most"""


@contextlib.contextmanager
def results_topic(endpoint: Endpoint) -> Iterator[Endpoint]:
    """Make a topic beside an endpoint's, with as many partitions, for the time of the block.

    Raises:
        PluginError: Kafka refuses the topic, or does not answer.
        SiteError: a file of the site cannot be read.
    """
    results = replace(endpoint, name=f"{endpoint.name}-results")
    retained = {"retention.ms": "3600000", "retention.bytes": str(RESULTS_BYTES // results.parts)}
    topic = {"num_partitions": results.parts, "replication_factor": -1, "configs": retained}
    with _admin_client(endpoint.address, endpoint.client, "open") as admin:
        admin.create_topics({results.name: topic}, timeout_ms=int(TIMEOUT_S * 1000), wait_for_metadata=True)
    try:
        yield results
    finally:
        with (
            contextlib.suppress(PluginError),  # a Kafka that is gone has no topic to delete
            _admin_client(endpoint.address, endpoint.client, "close") as admin,
        ):
            admin.delete_topics([results.name], timeout_ms=5000)


class KafkaSource:
    """A topic for each cell, on the site's Kafka or an embedded one that serves all cells of a run."""

    def __init__(self, settings: KafkaSettings) -> None:
        if settings.client == "kafka-python" and importlib.util.find_spec("crc32c") is None:
            raise UsageError(
                "settings.kafka.client: kafka-python is limited to about 8 MB/s without the package 'crc32c';"
                ' run: pip install "stream-bench[kafka]"'
            )
        self._settings = settings
        self._server: EmbeddedServer[str] | None = None
        self._bootstrap, self._topic, self._parts = "", "", 0
        self._security: dict[str, security.Value] = {}

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  any size and cost will do
        """Return why it cannot carry the cell's messages, in a sentence; None when it can."""
        if self._settings.acks == 0:
            return "acks 0 means no confirmations, so sent messages cannot be counted; use 1 or all"
        if self._settings.client == "kafka-python" and self._settings.compression not in ("none", "gzip"):
            return f"kafka-python compresses with gzip only here, not with {self._settings.compression}"
        if self._settings.largest is not None and self._largest(cell) > self._settings.largest:
            needed, taken = size_text(self._largest(cell)), size_text(float(self._settings.largest))
            return (
                f"a batch may have {needed} (settings.kafka.batch, or one message);"
                f" settings.kafka.largest allows {taken}"
            )
        return None

    def prepare(self, cell: Cell, env: RunEnvironment) -> None:
        """Start the embedded Kafka that the cell needs, unless the site has one.

        Raises:
            UsageError: PySpark, Java or the Kafka client is missing.
            ServiceError: the broker does not come up.
        """
        if KAFKA_SITE.read(env.site) is None:
            self._embedded(cell, env)

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        """Make what the cell needs and return its endpoint.

        Raises:
            PluginError: Kafka refuses the topic, or does not answer.
            SiteError: a file of the site cannot be read.
            UsageError: PySpark, Java or the Kafka client is missing.
            ServiceError: the embedded broker does not come up.
        """
        site = KAFKA_SITE.read(env.site)
        self._bootstrap = site.bootstrap if site is not None else self._embedded(cell, env)
        self._security = security.client_settings(site.security if site is not None else None)
        self._parts = partitions(self._settings.partitions, cell, env)
        topic = {
            "num_partitions": self._parts,
            "replication_factor": self._settings.replication,
            "configs": self._limits(cell, env),
        }
        name = f"{cell.name}-{secrets.token_hex(4)}"
        with _admin_client(self._bootstrap, self._security, "open") as admin:
            admin.create_topics({name: topic}, timeout_ms=int(TIMEOUT_S * 1000), wait_for_metadata=True)
        self._topic = name
        return Endpoint("kafka", self._bootstrap, name, self._parts, client=self._client(cell) | self._security)

    def reset(self) -> None:
        """Have Kafka delete what is in the topic; offsets go on counting.

        Raises:
            PluginError: Kafka refuses, or does not answer.
            SiteError: a file of the site cannot be read.
        """
        parts = [TopicPartition(self._topic, part) for part in range(self._parts)]
        with _admin_client(self._bootstrap, self._security, "clear") as admin:
            ends = admin.list_partition_offsets(dict.fromkeys(parts, OffsetSpec.LATEST))
            admin.delete_records({part: end.offset for part, end in ends.items()}, timeout_ms=int(TIMEOUT_S * 1000))

    def close(self) -> None:
        """Remove what `open` made."""
        topic, self._topic = self._topic, ""
        if topic and (self._server is None or self._server.alive()):
            with (
                contextlib.suppress(PluginError),
                _admin_client(self._bootstrap, self._security, "close") as admin,
            ):  # a Kafka that is gone has no topic to delete
                admin.delete_topics([topic], timeout_ms=5000)

    def _embedded(self, cell: Cell, env: RunEnvironment) -> str:
        """Return the address of an embedded Kafka that accepts the cell's messages; start it if there is none."""
        broker = KafkaBroker(
            message_bytes=int(self._settings.largest or max(KafkaBroker().message_bytes, 2 * cell.largest_bytes))
        )
        self._server = env.cached_resource(
            ("kafka", broker),
            lambda: start_kafka(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
        )
        return self._server.address

    def _limits(self, cell: Cell, env: RunEnvironment) -> dict[str, str]:
        retained = int(self._settings.retained)
        if self._server is not None:
            retained = min(retained, shutil.disk_usage(env.data).free // 4)
        each = max(1, retained // self._parts)
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
        """Return the bytes of the largest batch."""
        return (
            int(self._settings.message_limit or 0)
            or max(int(self._settings.batch), cell.largest_bytes) + BATCH_OVERHEAD
        )


@contextlib.contextmanager
def _admin_client(bootstrap: str, client: Mapping[str, security.Value], verb: str) -> Iterator[KafkaAdminClient]:
    """Yield an administration client for the length of a verb: an idle one would log errors when Kafka dies."""
    try:
        opened = KafkaAdminClient(
            bootstrap_servers=bootstrap.split(","), bootstrap_timeout_ms=5000, **security.for_kafka_python(client)
        )
    except KafkaError as problem:
        raise PluginError("kafka", verb, f"no connection to {bootstrap}: {problem!r}") from problem
    try:
        with contextlib.closing(opened) as admin:
            yield admin
    except KafkaError as problem:
        raise PluginError("kafka", verb, f"{bootstrap} answers {problem!r}") from problem
