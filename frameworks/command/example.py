"""A program as a user could bring it: it reads a source, burns the CPU cost, and sends the headers back over TCP.

It reads every source with the harness's own consumers; docs/programs/ has examples without anything of the harness.
"""

import os
import socket
from contextlib import closing
from pathlib import Path

import msgspec

from bench.config.address import Address
from bench.plugins import registry
from bench.plugins.protocols import Endpoint
from bench.workload.processing import burn

TAKE_TIMEOUT_S = 0.05
MAX_MESSAGES = 1000


def main() -> None:
    """Read until the connection for the reports breaks."""
    told = msgspec.json.decode(Path(os.environ["STREAM_BENCH_ENDPOINT"]).read_bytes())
    endpoint = Endpoint(told["source"], told["address"], told["topic"], told["partitions"], client=told["client"])
    with (
        closing(registry.open_consumer(endpoint)) as consumer,
        socket.create_connection(Address.parse(told["report_address"])) as reports,
    ):
        reports.sendall(told["report_token"].encode() + b"\n")
        while True:
            heads = [message[:64] for message in consumer.take(MAX_MESSAGES, TAKE_TIMEOUT_S)]
            if not told["cpu_seconds"]:
                reports.sendall(b"".join(heads))
                continue
            for head in heads:
                used = burn(told["cpu_seconds"])
                reports.sendall(f"cpu {used:.9f}".encode().ljust(64) + head)


if __name__ == "__main__":
    main()
