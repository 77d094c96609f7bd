"""Redis streams as a source: a stream a partition for each cell, on the site's Redis or an embedded one."""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct
from redis import Redis, RedisError

from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import partitions
from bench.plugins.protocols import Endpoint
from bench.services.embedded_server import EmbeddedServer
from bench.units import Size, size_text
from stream_bench_redis.client import FIELD, SOURCE, connect, stream_names
from stream_bench_redis.server import start_server
from stream_bench_redis.site import REDIS_SITE

MAX_MESSAGE_BYTES = 512 * 2**20
"""Of a value in Redis (proto-max-bulk-len)."""
MIN_MEMORY_BYTES = 256 * 2**20
MEMORY_FACTOR = 4
"""An embedded Redis may use this many times the bytes that it retains: entries need more, and connections some."""

Count = Annotated[int, Meta(ge=1)]


class RedisSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The streams of a cell, and how much may wait in them."""

    partitions: Count | None = None
    """streams of a cell, each read by one process; as many as the framework has cores, and two at least, when left
    out"""
    queue: Size = Size(16 * 10**6)
    """that may wait in the sender"""
    queue_messages: Count = 20_000
    retained: Size = Size(64 * 10**6)
    """unread messages in all streams of a cell; beyond it the source takes no more"""
    retained_messages: Count = 100_000


class RedisSource:
    """A stream a partition for each cell, on the site's Redis or an embedded one that serves all cells of a run."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._server: EmbeddedServer[str] | None = None
        self._address = self._password_file = ""
        self._streams: Sequence[str] = ()

    def unsupported_reason(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  Redis takes any content
        """Return why Redis cannot carry the cell's messages; None when it can."""
        largest = min(MAX_MESSAGE_BYTES, int(self._settings.retained))
        if cell.largest_bytes <= largest:
            return None
        return (
            f"a message has {size_text(cell.largest_bytes)}, Redis takes {size_text(largest)} here"
            f" (settings.redis-stream.retained; {size_text(MAX_MESSAGE_BYTES)} at most)"
        )

    def open(self, cell: Cell, env: RunEnvironment) -> Endpoint:
        """Make empty streams for the cell."""
        self._find_server(env)
        settings, name = self._settings, f"stream-bench:{cell.name}-{secrets.token_hex(4)}"
        parts = partitions(settings.partitions, cell, env)
        with self._client("open") as client:
            self._streams = stream_names(name, parts)
            for stream in self._streams:  # an entry that is deleted at once leaves an empty stream
                client.xadd(stream, {FIELD: b""}, maxlen=0, approximate=False)
        client_settings: dict[str, str | int | float | bool] = {
            "password_file": self._password_file,
            "queue": _messages(settings.queue_messages, settings.queue, cell),
            "unread": _messages(settings.retained_messages, settings.retained, cell),
            "message_bytes": cell.message_bytes,
        }
        return Endpoint(SOURCE, self._address, name, parts, client=client_settings)

    def reset(self) -> None:
        """Delete what is in the streams; the numbers of their entries go on."""
        with self._client("reset") as client:
            for stream in self._streams:
                client.xtrim(stream, maxlen=0, approximate=False)

    def close(self) -> None:
        """Delete the streams."""
        streams, self._streams = self._streams, ()
        if streams and (self._server is None or self._server.alive()):
            with contextlib.suppress(PluginError), self._client("close") as client:  # a Redis that is gone has none
                client.delete(*streams)

    def _find_server(self, env: RunEnvironment) -> None:
        """Set address and password file to those of the site's Redis, or of an embedded one."""
        site = REDIS_SITE.read(env.site)
        if site is not None:
            self._address = site.address
            self._password_file = site.password_file or ""
            return
        memory_bytes = max(MIN_MEMORY_BYTES, MEMORY_FACTOR * int(self._settings.retained))
        self._server = env.cached_resource((SOURCE, memory_bytes), lambda: start_server(env, memory_bytes))
        self._address = self._server.address

    @contextlib.contextmanager
    def _client(self, verb: str) -> Iterator[Redis]:
        """Yield a connection for the length of a verb."""
        with contextlib.closing(connect(self._address, self._password_file)) as client:
            try:
                yield client
            except RedisError as problem:
                raise PluginError(SOURCE, verb, f"Redis at {self._address}: {problem}") from problem


def _messages(max_messages: int, max_bytes: int, cell: Cell) -> int:
    """Return the messages of a cell that fit into both bounds, at least one."""
    return max(1, min(max_messages, max_bytes // cell.message_bytes))
