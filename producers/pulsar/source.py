"""Messages through Pulsar: a fresh partitioned topic for each cell, its partitions written in turn, counted when Pulsar confirms.

A Python callback for each message is what makes the client slow (33,000 messages/s a process; 170,000 without). Each partition has
a producer of its own, whose messages are confirmed in their order: so its last confirmed number says how many, and only the last
message of each step has a callback, for failures.
"""

import contextlib
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Protocol
from zlib import crc32

import _pulsar
import pulsar
from msgspec import Meta, Struct

from bench.analysis.bounds import Copies, pulsar_copies
from bench.config.site import PulsarSite, Site
from bench.errors import PluginError, UsageError
from bench.model.cell import Cell
from bench.plugins.client_lint import ConfigWarning, of_compression
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.units import Seconds, Size, size_text
from producers.pulsar.admin import Admin
from producers.pulsar.connection import TIMEOUT, connected
from producers.pulsar.server import Broker, PulsarServer

logger = logging.getLogger(__name__)

OVERHEAD = 2**12
"""Bytes that a message may be larger than what it carries."""
USUAL_LARGEST = 5 * 2**20
"""Bytes of the largest message that a Pulsar takes as shipped (maxMessageSize)."""
MAX_PIECES = 10**6
"""That may wait in a client: a message sent in pieces takes a place for each."""
Count = Annotated[int, Meta(ge=1)]
_COMPRESSION = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}


STORES = KEYS = True
EMBEDDED = ("synced", "bookies", "write_quorum", "ack_quorum")
"""Settings that say how the embedded Pulsar keeps messages; a site's has its own."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic, the client that writes to it, how it is read, and the embedded Pulsar where there is no other."""

    partitions: Count = 2
    subscription: Literal["failover", "shared", "key_shared"] = "failover"
    """how readers of ours share the topic: whole partitions in order, any message to any, or the messages of a key in order"""
    keys: Count = 64
    """of messages, where the subscription is key_shared"""
    batching: bool = True
    batch: Size = Size(10**6)
    batch_messages: Count = 5000
    linger: Seconds = Seconds(0.005)
    chunking: bool = False
    """whether a message above the broker's limit is sent in pieces; otherwise its cell is refused"""
    compression: Literal["none", "lz4", "zlib", "zstd", "snappy"] = "none"
    queue: Size = Size(64 * 10**6)
    """that may wait in the client; with what lies in it, a slower Pulsar is noticed within about a second"""
    queue_messages: Count = 100_000
    largest: Size | None = None
    """message that the broker takes; left out: as large as the cell needs where it is ours, 5 MiB elsewhere"""
    synced: bool = True
    """whether the embedded bookies write their journal to the disk before they confirm"""
    bookies: Count = 1
    write_quorum: Count = 1
    ack_quorum: Count = 1
    """of the embedded Pulsar: who keeps a message, and how many of them must have it before it is confirmed"""


class Source:
    """A topic for each cell, on the site's Pulsar or an embedded one that serves all cells of a run."""

    def __init__(self, settings: Settings) -> None:
        if not settings.ack_quorum <= settings.write_quorum <= settings.bookies:
            raise UsageError("settings.pulsar: ack_quorum <= write_quorum <= bookies must hold")
        self._settings = settings
        self._server: PulsarServer | None = None
        self._admin: Admin | None = None
        self._topic = ""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  any cost and content will do
        settings = self._settings
        if settings.chunking and settings.subscription != "failover":
            return f"pieces of a message go to one reader only with the subscription failover, not with {settings.subscription}"
        return self._too_large(cell, int(settings.largest)) if settings.largest is not None else None

    def copies(self, site: Site) -> Copies | None:
        """What Pulsar makes of each byte, read once, on the site's brokers; None where it does not say who keeps it."""
        there = site.pulsar
        if there is None:
            return pulsar_copies(self._settings.write_quorum, bookies=self._settings.bookies)
        if there.write_quorum is None or there.bookies is None:
            return None
        return pulsar_copies(there.write_quorum, bookies=there.bookies, brokers=there.service_url.count(",") + 1)

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        site = env.site.pulsar or self._embedded(cell, env)
        if self._server is None and (
            unsupported_reason := self._too_large(cell, int(self._settings.largest or USUAL_LARGEST))
        ):
            raise PluginError("pulsar", "open", unsupported_reason)
        if self._server is None and (without := self._without_effect()):
            env.note(f"the site's Pulsar keeps messages in its own way: settings.pulsar.{without} have no effect")
        self._admin = Admin(site)
        name = f"{cell.name}-{secrets.token_hex(4)}"
        self._admin.make_topic(name, self._settings.partitions)
        self._topic = name
        return Endpoint(
            "pulsar",
            site.service_url,
            f"persistent://{site.namespace}/{name}",
            self._settings.partitions,
            ordered=self._settings.subscription == "failover",
            ordered_by_key=self._settings.subscription == "key_shared",
            client=self._client(cell, site),
        )

    def clear(self) -> None:
        """What every reader has acknowledged Pulsar forgets by itself."""

    def close(self) -> None:
        topic, self._topic = self._topic, ""
        if topic and self._admin is not None and (self._server is None or self._server.alive()):
            with contextlib.suppress(PluginError):  # a Pulsar that is gone has no topic to delete
                self._admin.delete_topic(topic)

    def _without_effect(self) -> str:
        """The settings of the embedded Pulsar alone that were given, in one word; empty when none were."""
        usual = Settings()
        return ", ".join(name for name in EMBEDDED if getattr(self._settings, name) != getattr(usual, name))

    def _embedded(self, cell: Cell, env: RunEnvironment) -> PulsarSite:
        """Where a Pulsar of ours stands that takes the cell's messages."""
        settings = self._settings
        usual = max(Broker().message_bytes, 2 * cell.largest_bytes, self._batch(cell.message_bytes) + OVERHEAD)
        needed = USUAL_LARGEST if settings.chunking else usual
        broker = Broker(
            message_bytes=int(settings.largest or needed),
            synced=settings.synced,
            bookies=settings.bookies,
            write_quorum=settings.write_quorum,
            ack_quorum=settings.ack_quorum,
        )
        self._server = env.cached_resource(
            ("pulsar", broker),
            lambda: PulsarServer.deployed(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
        )
        return self._server.site

    def _batch(self, message_bytes: int) -> int:
        """Bytes that messages of that size are put together to; 0 where each goes alone: a batch of one is a copy for nothing."""
        settings = self._settings
        useful = settings.batching and not settings.chunking and settings.batch >= 2 * message_bytes
        return int(settings.batch) if useful else 0

    def _too_large(self, cell: Cell, largest: int) -> str | None:
        """Why a cell's messages, or batches of them, cannot pass; None when they can."""
        if self._settings.chunking:
            return None
        raised = "raise settings.pulsar.largest (where the cluster's maxMessageSize allows it)"
        most, this, batch = size_text(largest), size_text(cell.largest_bytes), self._batch(cell.message_bytes)
        if cell.largest_bytes + OVERHEAD > largest:
            return f"Pulsar takes messages up to {most}, this one has {this}; {raised} or set settings.pulsar.chunking"
        if batch + OVERHEAD > largest:
            return (
                f"Pulsar takes batches up to {most}, settings.pulsar.batch is {size_text(batch)}; lower it, or {raised}"
            )
        return None

    def _client(self, cell: Cell, site: PulsarSite) -> dict[str, str | int | float | bool]:
        settings = self._settings
        return {
            "admin_url": site.admin_url,
            "namespace": site.namespace,
            "ca_file": site.ca_file or "",
            "token_file": site.token_file or "",
            "subscription": settings.subscription,
            "keys": settings.keys if settings.subscription == "key_shared" else 0,
            "message_bytes": cell.message_bytes,
            "batch": self._batch(cell.message_bytes),
            "batch_messages": settings.batch_messages,
            "linger": float(settings.linger),
            "chunking": settings.chunking,
            "compression": settings.compression,
            "waiting": max(2, min(settings.queue_messages, int(settings.queue) // cell.message_bytes)),
        }


def config_warnings(settings: Settings, message_bytes: int, entropy: float) -> list[ConfigWarning]:  # noqa: ARG001  any size will do
    """What is wrong with these settings for messages of that entropy."""
    return list(of_compression(settings.compression, entropy, "settings.pulsar.compression"))


class Sender:
    """Writes message i to partition i modulo their number; what it takes is never more than the queue has room for."""

    def __init__(self) -> None:
        self._client: pulsar.Client | None = None
        self._parts: list[_Part] = []
        self._taken = self._most = 0
        self._told = False

    def open(self, endpoint: Endpoint) -> None:
        self._client, self._most = connected(endpoint.address, endpoint.client), int(endpoint.client["waiting"])
        counted = _EachCounted if endpoint.client["keys"] or endpoint.client["chunking"] else _LastCounted
        try:
            for part in range(endpoint.parts):
                options = _producer_options(endpoint)
                producer = self._client.create_producer(f"{endpoint.name}-partition-{part}", **options)
                self._parts.append(counted(producer, int(endpoint.client["keys"])))
        except pulsar.PulsarException as problem:
            raise PluginError("pulsar", "open", f"no producer at {endpoint.address}: {problem}") from problem

    def send(self, messages: Sequence[bytes]) -> int:
        count = len(self._parts)
        room = max(0, self._most - (self._taken - sum(self.confirmed())))
        offered = messages[:room]
        for number, part in enumerate(self._parts):
            share = offered[(number - self._taken) % count :: count]
            if share:
                part.write(share)
        self._taken += len(offered)
        return len(offered)

    def send_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> int:
        """Each to the partition that its key's checksum names: messages of one key keep their order."""
        taken = min(len(messages), max(0, self._most - (self._taken - sum(self.confirmed()))))
        places = [crc32(key) % len(self._parts) for key in keys[:taken]]
        for number, part in enumerate(self._parts):
            share = [place for place in range(taken) if places[place] == number]
            if share:
                part.write([messages[place] for place in share], [keys[place].decode() for place in share])
        self._taken += taken
        return taken

    def confirmed(self) -> tuple[int, int]:
        settled = [part.settled() for part in self._parts]
        if not self._told and (why := next((part.refused for part in self._parts if part.refused), None)):
            logger.warning("Pulsar refused a message: %s", why)
            self._told = True
        return sum(confirmed for confirmed, _ in settled), sum(failed for _, failed in settled)

    def close(self) -> None:
        client, self._client, self._parts = self._client, None, []
        if client is not None:
            client.shutdown()


class _Part(Protocol):
    """The producer of one partition."""

    refused: str | None
    """why the first message that failed did"""

    def write(self, messages: Sequence[bytes], keys: Sequence[str] = ()) -> None:
        """Write messages, with a key for each where there are any."""

    def settled(self) -> tuple[int, int]:
        """(confirmed, failed) of what was written."""


class _LastCounted:
    """A producer whose messages Pulsar confirms in their order, so that the number of the last one counts them.

    Callbacks run in the client's own thread, which knows nothing of gevent: they set numbers and do nothing else.
    """

    def __init__(self, producer: pulsar.Producer, _keys: int) -> None:
        self._raw = producer._producer  # noqa: SLF001  the wrapper looks at eleven options for each message: half of the rate
        self._written = 0
        self.refused: str | None = None
        self._given_up = (
            0,
            0,
        )  # (how many failed, up to which message that is known); set at once, by the callbacks alone

    def write(self, messages: Sequence[bytes], keys: Sequence[str] = ()) -> None:
        send, builder = self._raw.send_async, _pulsar.MessageBuilder
        if keys:
            *built, last = [
                builder().content(one).partition_key(key).build() for one, key in zip(messages, keys, strict=True)
            ]
            for message in built:
                send(message, None)
        else:
            for content in messages[:-1]:
                send(builder().content(content).build(), None)
            last = builder().content(messages[-1]).build()
        self._written += len(messages)
        send(last, self._watching(self._written))

    def settled(self) -> tuple[int, int]:
        failed, upto = self._given_up  # first: what fails meanwhile is then not taken for confirmed
        return max(self._raw.last_sequence_id() + 1, upto) - failed, failed

    def _watching(self, written: int) -> Callable[[pulsar.Result, object], None]:
        """A callback that, if the last message failed, takes all before it for failed that were not confirmed by then."""

        def ended(result: pulsar.Result, _: object) -> None:
            if result != pulsar.Result.Ok:
                self.refused = self.refused or str(result)
                failed, upto = self._given_up
                settled = max(self._raw.last_sequence_id() + 1, upto)
                self._given_up = (failed + max(0, written - settled), max(settled, written))

        return ended


class _EachCounted:
    """A producer whose messages are confirmed in any order, as batches of different keys are: each has its callback."""

    def __init__(self, producer: pulsar.Producer, keys: int) -> None:
        self._raw = producer._producer  # noqa: SLF001  as above
        self._keys, self._written = keys, 0
        self._confirmed = self._failed = 0
        self.refused: str | None = None

    def write(self, messages: Sequence[bytes], keys: Sequence[str] = ()) -> None:
        for place, message in enumerate(messages):
            builder = _pulsar.MessageBuilder().content(message)
            if self._keys or keys:
                builder.partition_key(keys[place] if keys else str(self._written % self._keys))
            self._written += 1
            self._raw.send_async(builder.build(), self._count)

    def settled(self) -> tuple[int, int]:
        return self._confirmed, self._failed

    def _count(self, result: pulsar.Result, _: object) -> None:
        if result == pulsar.Result.Ok:
            self._confirmed += 1
        else:
            self.refused = self.refused or str(result)
            self._failed += 1


def _producer_options(endpoint: Endpoint) -> dict[str, Any]:
    """How a producer of one partition is made."""
    client = endpoint.client
    return {
        "send_timeout_millis": int(TIMEOUT * 1000),
        "compression_type": _COMPRESSION[str(client["compression"])],
        # we bound the queue, so that what is taken is always the first part
        "max_pending_messages": MAX_PIECES if client["chunking"] else int(client["waiting"]) + 1,
        "batching_enabled": bool(client["batch"]),
        "batching_max_messages": int(client["batch_messages"]),
        "batching_max_allowed_size_in_bytes": max(1, int(client["batch"])),
        "batching_max_publish_delay_ms": max(1, round(float(client["linger"]) * 1000)),
        "batching_type": pulsar.BatchingType.KeyBased if client["keys"] else pulsar.BatchingType.Default,
        "chunking_enabled": bool(client["chunking"]),
    }
