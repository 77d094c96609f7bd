"""A process of the benchmark's plain loop: reads a partition from its beginning with Kafka's client, and processes."""

import time

from msgspec import Struct

from bench.system.child_main import serve_command
from bench.system.ipc import Channel
from bench.workload.processing import MessageProcessor

_TIMEOUT_S = 120.0
_TAKE_TIMEOUT_S = 0.05


class ReadPartition(Struct, frozen=True, tag="read_partition"):
    """A command, sent once: read a partition."""

    address: str
    topic: str
    part: int
    most: int
    """messages to take at once"""
    work: MessageProcessor


def main() -> None:
    """Serve the channel whose file number ends the command line."""
    serve_command(ReadPartition, _read)


def _read(channel: Channel[ReadPartition], command: ReadPartition) -> None:
    from confluent_kafka import Consumer, TopicPartition

    settings = {
        "bootstrap.servers": command.address,
        "group.id": "benchmark",
        "fetch.message.max.bytes": 16 * 2**20,
        "queued.max.messages.kbytes": 64 * 2**10,
        "fetch.queue.backoff.ms": 10,
    }
    consumer, deadline = Consumer(settings), time.monotonic() + _TIMEOUT_S
    consumer.assign([TopicPartition(command.topic, command.part, 0)])
    try:
        while time.monotonic() < deadline:
            values = [one.value() or b"" for one in consumer.consume(command.most, _TAKE_TIMEOUT_S) if not one.error()]
            for report in command.work.process(values) if values else ():
                channel.send(report)
            channel.receive(timeout=0)  # EOFError ends it
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
