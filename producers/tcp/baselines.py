"""Baseline producers over TCP."""

import socket
from pathlib import Path
from threading import Event, Thread

from bench.config.address import Address
from bench.model.message_header import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.workload.rate_meter import RateMeter, stamp


def discard(endpoint: Endpoint, over: Event) -> None:
    """Connect to every sender as soon as it listens; read and discard."""
    readers = [Thread(target=_discard, args=(address, over), daemon=True) for address in endpoint.address.split(",")]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def _discard(address: str, over: Event) -> None:
    host, port = Address.parse(address)
    nowhere = bytearray(2**20)
    while not over.is_set():
        try:
            with socket.create_connection((host, port), timeout=5) as reader:
                reader.settimeout(None)
                while reader.recv_into(nowhere) and not over.is_set():
                    pass
        except OSError:
            over.wait(0.02)


def client_loop(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path, *, stamped: bool = True) -> None:
    """Run the simplest loop: one `sendall` a message, whose number and time are written into one array.

    What the kernel has counts as confirmed, as with the sender.
    """
    host, port = Address.parse(endpoint.address)
    with socket.create_server((host, port), backlog=1) as listener:
        listener.settimeout(20)
        writer, _peer = listener.accept()
        with writer:
            line, count, some = bytearray(message[:-1] + b"\n"), 0, max(1, min(1000, 10**6 // len(message)))
            while meter.keep_measuring(count):
                for number in range(count, count + some):
                    if stamped:
                        line[:HEADER_BYTES] = stamp(number)
                    writer.sendall(line)
                count += some
