"""A program as a user could bring it: reads a source, does the work, and reports each message with all that it did.

It reads every source with the harness's own consumers; docs/programs/ has programs without anything of the harness.
"""

import os
import socket
from contextlib import closing
from pathlib import Path
from zlib import crc32

import msgspec

from bench.config.address import Address
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.workload.processing import burn
from frameworks.command.endpoint_file import EndpointRecord

TAKE_TIMEOUT_S = 0.05
MAX_MESSAGES = 1000


def main() -> None:
    """Read until the connection for the reports breaks."""
    given = msgspec.json.decode(Path(os.environ["STREAM_BENCH_ENDPOINT"]).read_bytes(), type=EndpointRecord)
    endpoint = Endpoint(given.source, given.address, given.topic, given.partitions, client=given.client)
    with (
        closing(registry.open_consumer(endpoint)) as consumer,
        socket.create_connection(Address.parse(given.report_address)) as reports,
    ):
        reports.sendall(given.report_token.encode() + b" 80\n")
        while True:
            records = (work(message, given.cpu_seconds) for message in consumer.take(MAX_MESSAGES, TAKE_TIMEOUT_S))
            if given.cpu_seconds:
                for record in records:
                    reports.sendall(record)
            else:
                reports.sendall(b"".join(records))


def work(message: bytes, cpu_seconds: float) -> bytes:
    """Read a message, spend its CPU cost, and return the record that reports both."""
    checksum, used = crc32(message[64:]), burn(cpu_seconds) if cpu_seconds else 0.0
    return message[:64] + b"%08x%08x" % (round(used * 1e6), checksum)


if __name__ == "__main__":
    main()
