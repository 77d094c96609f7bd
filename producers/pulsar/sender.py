"""Pulsar's sender: writes the partitions in turn and counts what Pulsar confirms.

A Python callback for each message is what makes the client slow (33,000 messages/s a process; 170,000 without). Each
partition has a producer of its own, whose messages are confirmed in their order: so its last confirmed number says how
many, and only the last message of each step has a callback, for failures.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from zlib import crc32

import _pulsar
import pulsar

from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from producers.pulsar.connection import TIMEOUT_S, make_client

logger = logging.getLogger(__name__)

MAX_PIECES = 10**6
"""That may wait in a client: a message sent in pieces takes a place for each."""


_COMPRESSION = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}


class PulsarSender:
    """Writer of message i to partition i modulo their number; it takes no more than its queue has space for."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._parts: list[_Part] = []
        self._taken, self._most = 0, int(endpoint.client["waiting"])
        self._has_warned = self._closed = False
        self._client = make_client(endpoint.address, endpoint.client)
        counted = _EachCounted if endpoint.client["keys"] or endpoint.client["chunking"] else _LastCounted
        try:
            for part in range(endpoint.parts):
                options = _producer_options(endpoint)
                producer = self._client.create_producer(f"{endpoint.name}-partition-{part}", **options)
                self._parts.append(counted(producer, int(endpoint.client["keys"])))
        except pulsar.PulsarException as problem:
            self.close()
            raise PluginError("pulsar", "open", f"no producer at {endpoint.address}: {problem}") from problem

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        count = len(self._parts)
        free = max(0, self._most - (self._taken - sum(self.confirmed())))
        offered = messages[:free]
        for number, part in enumerate(self._parts):
            share = offered[(number - self._taken) % count :: count]
            if share:
                part.write(share)
        self._taken += len(offered)
        return len(offered)

    def send_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> int:
        """Offer messages with a key each; return how many were taken.

        A message goes to the partition that its key's checksum names: messages of one key keep their order.
        """
        taken = min(len(messages), max(0, self._most - (self._taken - sum(self.confirmed()))))
        places = [crc32(key) % len(self._parts) for key in keys[:taken]]
        for number, part in enumerate(self._parts):
            share = [place for place in range(taken) if places[place] == number]
            if share:
                part.write([messages[place] for place in share], [keys[place].decode() for place in share])
        self._taken += taken
        return taken

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        settled = [part.settled() for part in self._parts]
        if not self._has_warned and (why := next((part.refused for part in self._parts if part.refused), None)):
            logger.warning("Pulsar refused a message: %s", why)
            self._has_warned = True
        return sum(confirmed for confirmed, _ in settled), sum(failed for _, failed in settled)

    def statistics(self) -> Mapping[str, float]:
        """Return how many messages wait: the client shows Python nothing else."""
        return {"waiting_messages": self._taken - sum(self.confirmed())}

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        if not self._closed:
            self._closed, self._parts = True, []
            self._client.shutdown()


class _Part(Protocol):
    """The producer of one partition."""

    refused: str | None
    """why the first message that failed did"""

    def write(self, messages: Sequence[bytes], keys: Sequence[str] = ()) -> None:
        """Write messages, with a key for each where there are any."""

    def settled(self) -> tuple[int, int]:
        """Return (confirmed, failed) of what was written."""


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
        """Write messages, with a key for each where there are any."""
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
        send(last, self._failure_callback(self._written))

    def settled(self) -> tuple[int, int]:
        """Return (confirmed, failed) of what was written."""
        failed, upto = self._given_up  # first: what fails meanwhile is then not taken for confirmed
        return max(self._raw.last_sequence_id() + 1, upto) - failed, failed

    def _failure_callback(self, written: int) -> Callable[[pulsar.Result, object], None]:
        """Return a callback that, if the last message failed, counts all unconfirmed ones before it as failed."""

        def ended(result: pulsar.Result, _: object) -> None:
            if result != pulsar.Result.Ok:
                self.refused = self.refused or str(result)
                failed, upto = self._given_up
                settled = max(self._raw.last_sequence_id() + 1, upto)
                self._given_up = (failed + max(0, written - settled), max(settled, written))

        return ended


class _EachCounted:
    """A producer whose messages are confirmed in any order, as batches of different keys are.

    Each has its callback.
    """

    def __init__(self, producer: pulsar.Producer, keys: int) -> None:
        self._raw = producer._producer  # noqa: SLF001  as above
        self._keys, self._written = keys, 0
        self._confirmed = self._failed = 0
        self.refused: str | None = None

    def write(self, messages: Sequence[bytes], keys: Sequence[str] = ()) -> None:
        """Write messages, with a key for each where there are any."""
        for place, message in enumerate(messages):
            builder = _pulsar.MessageBuilder().content(message)
            if self._keys or keys:
                builder.partition_key(keys[place] if keys else str(self._written % self._keys))
            self._written += 1
            self._raw.send_async(builder.build(), self._count)

    def settled(self) -> tuple[int, int]:
        """Return (confirmed, failed) of what was written."""
        return self._confirmed, self._failed

    def _count(self, result: pulsar.Result, _: object) -> None:
        if result == pulsar.Result.Ok:
            self._confirmed += 1
        else:
            self.refused = self.refused or str(result)
            self._failed += 1


def _producer_options(endpoint: Endpoint) -> dict[str, Any]:
    """Return the options of the producer of one partition."""
    client = endpoint.client
    return {
        "send_timeout_millis": int(TIMEOUT_S * 1000),
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
