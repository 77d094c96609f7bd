"""Baseline producer of Redis streams, and a reader that discards messages."""

from pathlib import Path
from threading import Event

from bench.model.message_header import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.workload.rate_meter import RateMeter, stamp
from stream_bench_redis.client import FIELD, connect_endpoint, count_unread, streams_of
from stream_bench_redis.sender import FULL_INTERVAL_S, MAX_BATCH_BYTES, MAX_BATCH_MESSAGES

DISCARD_INTERVAL_S = 0.005


def client_loop(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path) -> None:
    """Send with the simplest loop of redis-py that confirms: one pipeline of XADD after the other to one stream."""
    stream, filler, count = streams_of(endpoint)[0], message[HEADER_BYTES:], 0
    max_unread, some = int(endpoint.client["unread"]), max(1, min(MAX_BATCH_MESSAGES, MAX_BATCH_BYTES // len(message)))
    full = Event()  # never set: waits
    with connect_endpoint(endpoint) as client:
        while meter.keep_measuring(count):
            if count_unread(client, [stream]) >= max_unread:
                full.wait(FULL_INTERVAL_S)
                continue
            pipeline = client.pipeline(transaction=False)
            for number in range(count, count + some):
                pipeline.xadd(stream, {FIELD: stamp(number) + filler})
            count += len(pipeline.execute())


def discard(endpoint: Endpoint, over: Event) -> None:
    """Delete what is in the streams, again and again, until the event is set."""
    with connect_endpoint(endpoint) as client:
        while not over.wait(DISCARD_INTERVAL_S):
            for stream in streams_of(endpoint):
                client.xtrim(stream, maxlen=0, approximate=False)
