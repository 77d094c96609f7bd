"""The sender to Redis streams: a thread that writes batches, and a bounded queue in front of it.

The streams are bounded, too. Redis itself would delete the oldest messages of a full stream (MAXLEN), or use all
memory. So the thread asks for the streams' lengths with each batch, and writes no more while they are full. A consumer
deletes what was processed.
"""

import logging
from collections.abc import Sequence
from threading import Event, Thread

from redis import RedisError

from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe
from stream_bench_redis.client import FIELD, SOURCE, connect_endpoint, count_unread, streams_of

logger = logging.getLogger(__name__)

MAX_BATCH_MESSAGES, MAX_BATCH_BYTES = 500, 2**20
"""Written in one go: more would keep the load generator's other work waiting."""
FULL_INTERVAL_S = 0.005
"""Between two looks at full streams."""
IDLE_TIMEOUT_S = 0.05
"""For which the thread waits for messages before it looks whether it is closed."""
CLOSE_TIMEOUT_S = 2.0


class RedisSender:
    """Writes message i to partition i modulo their number; takes what its queue has space for.

    What Redis refuses, or does not answer because it is gone, has failed and is not sent again.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._closed = Event()
        self._confirmed = self._failed = 0
        self._streams, self._max_unread = streams_of(endpoint), int(endpoint.client["unread"])
        queue, message_bytes = int(endpoint.client["queue"]), int(endpoint.client["message_bytes"])
        self._queue = Pipe(queue, queue * message_bytes)
        self._batch = max(1, min(MAX_BATCH_MESSAGES, MAX_BATCH_BYTES // message_bytes))
        self._client = connect_endpoint(endpoint)
        try:
            self._unread = count_unread(self._client, self._streams)
        except RedisError as problem:
            self._client.close()
            raise PluginError(SOURCE, "open", f"Redis at {endpoint.address}: {problem}") from problem
        self._thread = Thread(target=self._run, name=SOURCE, daemon=True)
        self._thread.start()

    def send(self, messages: Sequence[bytes]) -> int:
        """Put messages into the queue; return how many it took."""
        return self._queue.put(messages)

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        return self._confirmed, self._failed

    def close(self) -> None:
        """Stop the thread and disconnect."""
        self._closed.set()
        self._thread.join(CLOSE_TIMEOUT_S)
        self._client.close()

    def _run(self) -> None:
        while not self._closed.is_set():
            batch = self._queue.take(self._batch, IDLE_TIMEOUT_S)
            try:
                self._wait_for_space()
                if batch and not self._closed.is_set():
                    self._write(batch)
            except RedisError as problem:
                self._count_failures(len(batch), problem)

    def _wait_for_space(self) -> None:
        while self._unread >= self._max_unread and not self._closed.wait(FULL_INTERVAL_S):
            self._unread = count_unread(self._client, self._streams)

    def _write(self, batch: Sequence[bytes]) -> None:
        pipeline, count = self._client.pipeline(transaction=False), len(self._streams)
        first = self._confirmed + self._failed
        for number, message in enumerate(batch, first):
            pipeline.xadd(self._streams[number % count], {FIELD: message})
        for stream in self._streams:
            pipeline.xlen(stream)
        replies = pipeline.execute(raise_on_error=False)
        refused = [reply for reply in replies[: len(batch)] if isinstance(reply, RedisError)]
        self._unread = sum(length for length in replies[len(batch) :] if isinstance(length, int))
        if refused:
            self._count_failures(len(refused), refused[0])
        self._confirmed += len(batch) - len(refused)

    def _count_failures(self, count: int, problem: RedisError) -> None:
        if self._failed == 0 and count:
            logger.warning("Redis did not store messages: %s", problem)
        self._failed += count
