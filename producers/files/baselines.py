"""Baseline producers of files."""

import os
import secrets
from pathlib import Path
from threading import Event

from bench.model.message_header import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.workload.rate_meter import RateMeter, stamp
from producers.files.source import UNFINISHED


def discard(endpoint: Endpoint, over: Event) -> None:
    """Delete complete files, those of half a second at a time: listing a folder all the time would cost CPU."""
    while not over.wait(0.5):
        for entry in os.scandir(endpoint.address):
            os.unlink(entry.path)  # noqa: PTH108  a Path for each of 50,000 files a second would be the work


def client_loop(endpoint: Endpoint, message: bytes, meter: RateMeter, _: Path, *, stamped: bool = True) -> None:
    """Run the simplest loop: open, write, close, rename, by path; number and time are written into one array."""
    complete, unfinished = endpoint.address, str(Path(endpoint.address).parent / UNFINISHED)
    count, prefix, content = 0, secrets.token_hex(4), bytearray(message)
    while meter.keep_measuring(count):
        name = f"{prefix}-{count:012d}"
        file = os.open(f"{unfinished}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        if stamped:
            content[:HEADER_BYTES] = stamp(count)
        os.write(file, content)
        os.close(file)
        os.rename(f"{unfinished}/{name}", f"{complete}/{name}")  # noqa: PTH104  as above
        count += 1
