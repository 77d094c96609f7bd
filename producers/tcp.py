"""Messages over one TCP connection, a line each: the source listens, the framework connects.

TCP itself confirms nothing that a program could see: "confirmed" means here that the kernel has the whole message. What lies in
the kernel's buffers when a reader goes away is lost, and shows as lost.
"""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from msgspec import Struct

from bench.errors import SiteError
from bench.faces import Endpoint, Ground
from bench.message import LARGEST_TEXT_ENTROPY
from bench.meter import Meter
from bench.scenario import Cell

ALONE = True
JOINED_BYTES, JOINED_BELOW, MOST_BUFFERS = 2**18, 4096, 512
"""Messages are handed to the kernel together, up to so many bytes; small ones as one copy, larger ones where they lie."""
BUFFER_BYTES = 2**19
"""Asked of the kernel, which doubles it: small enough that a slow reader is soon noticed."""
PATIENCE, LONGEST_SEND = 0.004, 0.012
"""Seconds that a full socket has to make room before it counts as full, and that one `send` may take: waiting in the kernel
costs a third of the time of asking again (3.0 against 0.9 GB/s at 100 kB)."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the source listens."""

    host: str = "127.0.0.1"
    """an address of this machine that the framework can reach"""
    port: int = 0
    """0 = any that is free"""


class Source:
    """A port; who listens there is the sender."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def refuses(self, cell: Cell, entropy: float) -> str | None:  # noqa: ARG002  any size and cost will do
        if entropy > LARGEST_TEXT_ENTROPY:
            return f"a line cannot carry a binary filler: entropy {entropy:g} is above {LARGEST_TEXT_ENTROPY:g}"
        return None

    def open(self, cell: Cell, ground: Ground) -> Endpoint:  # noqa: ARG002  all cells and grounds look alike to it
        host = self._settings.host
        try:
            with socket.create_server((host, self._settings.port)) as probe:
                port = probe.getsockname()[1]
        except OSError as problem:
            raise SiteError(f"tcp cannot listen at {host}:{self._settings.port}: {problem.strerror}") from problem
        return Endpoint("tcp", f"{host}:{port}")

    def clear(self) -> None:
        """Nothing stays behind."""

    def close(self) -> None:
        """Nothing was opened."""


class Sender:
    """Listens, and writes to the newest reader; where there is none, it takes nothing.

    A message that a reader got only in part is written to its successor in whole.
    """

    copies = True

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        self._reader: socket.socket | None = None
        self._buffers: list[bytes] = []  # one of joined lines, or each message and its newline
        self._next, self._written, self._held = 0, 0, 0
        self._taken = 0

    def open(self, endpoint: Endpoint) -> None:
        host, port = endpoint.address.rsplit(":", 1)
        try:
            self._listener = socket.create_server((host, int(port)), backlog=8)
        except OSError as problem:
            raise SiteError(f"tcp cannot listen at {endpoint.address}: {problem.strerror}") from problem
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)  # its connections inherit it
        self._listener.settimeout(0)

    def send(self, messages: Sequence[bytes]) -> int:
        deadline, taken = time.monotonic() + LONGEST_SEND, 0
        if not self._connected():
            return 0
        while self._flushed(deadline) and self._reader is not None and taken < len(messages):
            taken += self._hold(messages, taken)
        if self._held:  # the messages' memory is the caller's again from here on
            self._buffers = [bytes(part) for part in self._buffers]
        self._taken += taken
        return taken

    def confirmed(self) -> tuple[int, int]:
        if self._held and self._connected():
            self._flushed(time.monotonic())
        return self._taken - self._held, 0

    def close(self) -> None:
        self._part()
        if self._listener is not None:
            self._listener.close()

    def _connected(self) -> bool:
        """Whether there is a reader; a newer one replaces the one there was."""
        assert self._listener is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                newest, _ = self._listener.accept()
                self._part()
                self._greet(newest)
        if self._reader is not None and _gone(self._reader):
            self._part()
        return self._reader is not None

    def _hold(self, messages: Sequence[bytes], first: int) -> int:
        """Take the next piece of the messages; how many it has."""
        size = len(messages[first])
        count = max(1, min(len(messages) - first, JOINED_BYTES // size))
        if size < JOINED_BELOW:
            self._buffers = [b"\n".join([*messages[first : first + count], b""])]
        else:
            count = min(count, MOST_BUFFERS // 2)
            self._buffers = [part for message in messages[first : first + count] for part in (message, b"\n")]
        self._next, self._written, self._held = 0, 0, count
        return count

    def _flushed(self, deadline: float) -> bool:
        """Whether nothing is held back any more."""
        while self._held:
            assert self._reader is not None
            first: bytes | memoryview = memoryview(self._buffers[self._next])[self._written :]
            try:
                self._advance(os.writev(self._reader.fileno(), [first, *self._buffers[self._next + 1 :]]))
            except BlockingIOError:  # none of it within PATIENCE
                return False
            except OSError:
                self._part()
                return False
            if self._held and time.monotonic() > deadline:
                return False
        return True

    def _advance(self, count: int) -> None:
        """So many bytes more are written."""
        self._written += count
        while self._next < len(self._buffers) and self._written >= len(self._buffers[self._next]):
            self._written -= len(self._buffers[self._next])
            self._next += 1
        if self._next == len(self._buffers):
            self._buffers, self._held = [], 0

    def _greet(self, reader: socket.socket) -> None:
        reader.settimeout(0)
        reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, round(PATIENCE * 1e6)))
        os.set_blocking(reader.fileno(), True)  # for `writev`, which waits in the kernel, also under gevent
        self._reader = reader

    def _part(self) -> None:
        """Let the reader go; the next one begins with the first message that this one did not get in whole."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            if len(self._buffers) == 1:
                self._written = self._buffers[0].rfind(b"\n", 0, self._written) + 1
            else:
                self._next, self._written = self._next - self._next % 2, 0


def _gone(reader: socket.socket) -> bool:
    """Whether the other end has closed; what it may have written is thrown away."""
    try:
        return reader.recv(4096, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def discard(endpoint: Endpoint, over: Event) -> None:
    """Connect, as soon as somebody listens, and read into nowhere."""
    host, port = endpoint.address.rsplit(":", 1)
    nowhere = bytearray(2**20)
    while not over.is_set():
        try:
            with socket.create_connection((host, int(port)), timeout=5) as reader:
                reader.settimeout(None)
                while reader.recv_into(nowhere) and not over.is_set():
                    pass
        except OSError:
            over.wait(0.02)


def bare(endpoint: Endpoint, message: bytes, meter: Meter, _: Path) -> None:
    """The plainest loop: one `sendall` a message; what the kernel has counts as confirmed, as with the sender."""
    host, port = endpoint.address.rsplit(":", 1)
    with socket.create_server((host, int(port)), backlog=1) as listener:
        listener.settimeout(20)
        writer, _peer = listener.accept()
        with writer:
            line, count, some = message[:-1] + b"\n", 0, max(1, min(1000, 10**6 // len(message)))
            while meter.goes_on(count):
                for _turn in range(some):
                    writer.sendall(line)
                count += some


RIVALS = {"bare": bare}
