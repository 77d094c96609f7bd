"""The consumer of Redis streams: each stream is read by one member, which deletes what it has processed."""

import time
from collections import deque
from collections.abc import Sequence
from typing import cast

from redis import RedisError
from redis.typing import KeyT, StreamIdT

from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from stream_bench_redis.client import FIELD, SOURCE, connect_endpoint, streams_of

Entries = list[tuple[bytes, dict[bytes, bytes]]]
"""(number, fields) of messages of one stream."""


class RedisConsumer:
    """Reads the streams whose number modulo the members is its own; several members need as many partitions."""

    def __init__(self, endpoint: Endpoint, member: int, members: int) -> None:
        self._last: dict[KeyT, StreamIdT] = {}  # by stream, the number of the last entry that was read
        self._batches: deque[tuple[str, Entries]] = deque()
        self._processed: tuple[str, bytes] | None = None
        self._client = connect_endpoint(endpoint)
        try:
            for stream in streams_of(endpoint)[member::members]:
                self._last[stream] = self._client.xinfo_stream(stream)["last-generated-id"]
        except RedisError as problem:
            self._client.close()
            raise PluginError(SOURCE, "open", f"Redis at {endpoint.address}: {problem}") from problem

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Return the next messages of one stream; those of the call before count as processed."""
        try:
            self._acknowledge()
            if not self._batches:
                self._read(max_messages, timeout)
        except RedisError as problem:
            raise PluginError(SOURCE, "take", str(problem)) from problem
        if not self._batches:
            return ()
        stream, entries = self._batches.popleft()
        if len(entries) > max_messages:
            self._batches.appendleft((stream, entries[max_messages:]))
        batch = entries[:max_messages]
        self._processed = (stream, batch[-1][0])
        return [fields[FIELD] for _, fields in batch]

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def _acknowledge(self) -> None:
        """Delete the messages that were processed: the stream's length is what is still unread."""
        processed, self._processed = self._processed, None
        if processed is not None:
            stream, last = processed
            self._client.xtrim(stream, minid=_following(last), approximate=False)

    def _read(self, max_messages: int, timeout: float) -> None:
        if not self._last:  # more members than partitions
            time.sleep(timeout)
            return
        block_ms = max(1, round(1000 * timeout))  # 0 would wait for ever
        found = self._client.xread(self._last, count=max_messages, block=block_ms)
        replies = cast("list[tuple[bytes, Entries]]", found)
        for name, entries in replies:
            stream = name.decode()
            self._last[stream] = entries[-1][0]
            self._batches.append((stream, entries))


def _following(number: bytes) -> str:
    """Return the smallest number of an entry behind that one; numbers are milliseconds-counter."""
    milliseconds, _, counter = number.decode().partition("-")
    return f"{milliseconds}-{int(counter) + 1}"
