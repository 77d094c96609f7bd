"""Pulsar as a source: a partitioned topic for each cell, on the site's brokers or an embedded server."""

import contextlib
import logging
import secrets
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.errors import PluginError, UsageError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import partitions
from bench.plugins.protocols import Endpoint
from bench.services.embedded_server import EmbeddedServer
from bench.units import Seconds, Size, size_text
from producers.pulsar.admin import Admin
from producers.pulsar.server import PulsarBroker, start_pulsar
from producers.pulsar.site import PULSAR_SITE, PulsarSite

logger = logging.getLogger(__name__)


OVERHEAD = 2**12
"""Bytes that a message may be larger than what it carries."""


USUAL_LARGEST = 5 * 2**20
"""Bytes of the largest message that a Pulsar takes as shipped (maxMessageSize)."""


Count = Annotated[int, Meta(ge=1)]


EMBEDDED = ("synced", "bookies", "write_quorum", "ack_quorum")
"""PulsarSettings that say how the embedded Pulsar keeps messages; a site's has its own."""


class PulsarSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A topic, the client that writes to it, how it is read, and the embedded Pulsar where there is no other."""

    partitions: Count | None = None
    """as many as the framework has cores, and two at least, when left out"""
    subscription: Literal["failover", "shared", "key_shared"] = "failover"
    """how readers of ours share the topic: whole partitions in order, any message to any, or the messages of a key in
    order"""
    keys: Count = 64
    """number of distinct keys, with the subscription key_shared"""
    batching: bool = True
    batch: Size = Size(10**6)
    batch_messages: Count = 5000
    linger: Seconds = Seconds(0.005)
    chunking: bool = False
    """whether a message above the broker's limit is sent in pieces; otherwise its cell is unsupported"""
    compression: Literal["none", "lz4", "zlib", "zstd", "snappy"] = "none"
    queue: Size = Size(64 * 10**6)
    """bytes that may wait in the client; small enough that a slower broker is noticed within about a second"""
    queue_messages: Count = 100_000
    largest: Size | None = None
    """largest message that the broker accepts; as large as the cell needs with the embedded Pulsar, the site file's
    `message_limit` otherwise"""
    synced: bool = True
    """whether the embedded bookies write their journal to the disk before they confirm"""
    bookies: Count = 1
    """number of embedded bookies"""
    write_quorum: Count = 1
    """bookies that store each message"""
    ack_quorum: Count = 1
    """confirmations that the embedded Pulsar waits for"""


class PulsarSource:
    """A topic for each cell, on the site's Pulsar or an embedded one that serves all cells of a run."""

    def __init__(self, settings: PulsarSettings) -> None:
        if not settings.ack_quorum <= settings.write_quorum <= settings.bookies:
            raise UsageError("settings.pulsar: ack_quorum <= write_quorum <= bookies must hold")
        self._settings = settings
        self._server: EmbeddedServer[PulsarSite] | None = None
        self._admin: Admin | None = None
        self._topic = ""

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  any cost and content will do
        """Return why it cannot carry the cell's messages, in a sentence; None when it can."""
        settings = self._settings
        if settings.chunking and settings.subscription != "failover":
            return (
                "pieces of a message go to one reader only with the subscription failover, not"
                f" with {settings.subscription}"
            )
        return self._too_large(cell, int(settings.largest)) if settings.largest is not None else None

    def prepare(self, cell: Cell, env: RunEnvironment) -> None:
        """Start the embedded Pulsar that the cell needs, unless the site has one.

        Raises:
            UsageError: PySpark, Java or the Pulsar client is missing.
            ServiceError: it does not come up.
        """
        if PULSAR_SITE.read(env.site) is None:
            self._embedded(cell, env)

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        """Make what the cell needs and return its endpoint.

        Raises:
            PluginError: the site's Pulsar does not take messages as large as the cell's, refuses the topic, or does not
                answer.
            SiteError: a file of the site cannot be read.
            UsageError: PySpark, Java or the Pulsar client is missing.
            ServiceError: the embedded Pulsar does not come up.
        """
        site = PULSAR_SITE.read(env.site) or self._embedded(cell, env)
        limit = int(self._settings.largest or site.message_limit or USUAL_LARGEST)
        if self._server is None and (unsupported_reason := self._too_large(cell, limit)):
            raise PluginError("pulsar", "open", unsupported_reason)
        if self._server is None and (without := self._without_effect()):
            env.note(f"the site's Pulsar keeps messages in its own way: settings.pulsar.{without} have no effect")
        self._admin = Admin(site)
        name = f"{cell.name}-{secrets.token_hex(4)}"
        parts = partitions(self._settings.partitions, cell, env)
        self._admin.make_topic(name, parts)
        self._topic = name
        return Endpoint(
            "pulsar",
            site.service_url,
            f"persistent://{site.namespace}/{name}",
            parts,
            ordered=self._settings.subscription == "failover",
            ordered_by_key=self._settings.subscription == "key_shared",
            client=self._client(cell, site),
        )

    def reset(self) -> None:
        """Do nothing: Pulsar deletes what every reader has acknowledged."""

    def close(self) -> None:
        """Remove what `open` made."""
        topic, self._topic = self._topic, ""
        if topic and self._admin is not None and (self._server is None or self._server.alive()):
            with contextlib.suppress(PluginError):  # a Pulsar that is gone has no topic to delete
                self._admin.delete_topic(topic)

    def _without_effect(self) -> str:
        """Return the settings of the embedded Pulsar that were given, joined by commas; empty when none were."""
        usual = PulsarSettings()
        return ", ".join(name for name in EMBEDDED if getattr(self._settings, name) != getattr(usual, name))

    def _embedded(self, cell: Cell, env: RunEnvironment) -> PulsarSite:
        """Return the addresses of an embedded Pulsar that accepts the cell's messages; start it if there is none."""
        settings = self._settings
        usual = max(PulsarBroker().message_bytes, 2 * cell.largest_bytes, self._batch(cell.message_bytes) + OVERHEAD)
        needed = USUAL_LARGEST if settings.chunking else usual
        broker = PulsarBroker(
            message_bytes=int(settings.largest or needed),
            synced=settings.synced,
            bookies=settings.bookies,
            write_quorum=settings.write_quorum,
            ack_quorum=settings.ack_quorum,
        )
        self._server = env.cached_resource(
            ("pulsar", broker),
            lambda: start_pulsar(env.supervisor, broker, cache=env.cache, data=env.data, note=env.note),
        )
        return self._server.address

    def _batch(self, message_bytes: int) -> int:
        """Return the bytes of a batch of messages of that size; 0 where each goes alone.

        A batch of one is a needless copy.
        """
        settings = self._settings
        useful = settings.batching and not settings.chunking and settings.batch >= 2 * message_bytes
        return int(settings.batch) if useful else 0

    def _too_large(self, cell: Cell, largest: int) -> str | None:
        """Return why a cell's messages, or batches of them, cannot pass; None when they can."""
        if self._settings.chunking:
            return None
        raised = "give the cluster's maxMessageSize (pulsar.message_limit of the site file, or settings.pulsar.largest)"
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
