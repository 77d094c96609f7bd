"""Connections to Redis, and the names of a cell's streams."""

from collections.abc import Sequence

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bench.config.address import Address
from bench.plugins.protocols import Endpoint
from bench.services.credentials import read_secret

SOURCE = "redis-stream"
FIELD = b"m"
"""The one field of a stream's entry: the message."""
TIMEOUT_S = 10.0
"""For an answer of Redis."""


def connect(address: str, password_file: str) -> Redis:
    """Return a client of the Redis at host:port, which connects with its first command.

    The password is the first line of a file of this host; there is none where the path is empty. The library would send
    a failed command up to three times again: messages would be in the stream twice.
    """
    host, port = Address.parse(address)
    return Redis(
        host,
        port,
        password=read_secret(password_file) if password_file else None,
        protocol=2,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
    )


def connect_endpoint(endpoint: Endpoint) -> Redis:
    """Return a client of an endpoint."""
    return connect(endpoint.address, str(endpoint.client["password_file"]))


def streams_of(endpoint: Endpoint) -> Sequence[str]:
    """Return the names of an endpoint's streams, one a partition."""
    return stream_names(endpoint.name, endpoint.parts)


def stream_names(name: str, partitions: int) -> Sequence[str]:
    """Return the names of the streams, one a partition, of a cell with that name."""
    return [f"{name}:{part}" for part in range(partitions)]


def count_unread(client: Redis, streams: Sequence[str]) -> int:
    """Return the messages in the streams: those that a consumer has acknowledged are deleted."""
    pipeline = client.pipeline(transaction=False)
    for stream in streams:
        pipeline.xlen(stream)
    return sum(pipeline.execute())
