"""The sender over TCP.

TCP itself confirms nothing that a program could see: "confirmed" means here that the kernel has the whole message. What
lies in the kernel's buffers when a reader goes away is lost, and shows as lost.
"""

import contextlib
import fcntl
import os
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence
from functools import partial

from bench.config.address import Address
from bench.errors import SiteError
from bench.model.message_header import HEADER_BYTES
from bench.plugins.protocols import Endpoint
from bench.services.ports import listen_at
from bench.workload.batch_writer import Filler

JOINED_BYTES, JOINED_BELOW = 2**18, 4096
"""Small messages are handed to the kernel as one copy, up to so many bytes of them."""


GATHERED_BYTES, MAX_BUFFERS = 2**17, 768
"""Larger ones go together where they lie, up to so many bytes: two of 100 kB at once are slower (3.0 GB/s) than one
(3.5-3.8)."""


BUFFER_BYTES = 2**19
"""Asked of the kernel, which doubles it: small enough that a slow reader is soon noticed."""


TIMEOUT_S, MAX_SEND_S = 0.004, 0.012
"""Seconds that a full socket has to free space before it counts as full, and that one `send` may take: waiting in the
kernel costs a third of the time of asking again (3.0 against 0.9 GB/s at 100 kB)."""


NO_WAIT_S = 0.0005
"""Seconds within which a write has not waited for anybody."""


class TcpSender:
    """A listener that writes to the newest reader; while there is none, it takes nothing.

    A message that a reader got only in part is written to its successor in whole. Of an endpoint with several addresses
    it takes the first one of this host at which no other sender listens.
    """

    gathers_from = JOINED_BELOW

    def __init__(self, endpoint: Endpoint) -> None:
        self._reader: socket.socket | None = None
        self._buffers: list[Filler] = []  # one of joined lines, or `self._each` for each message, the last a newline
        self._each, self._next, self._written, self._left, self._held = 1, 0, 0, 0, 0
        self._taken, self.waited = 0, 0.0
        self._listener = _listen(endpoint.address.split(","))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)  # its connections inherit it
        self._listener.settimeout(0)

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        return self._send(len(messages), partial(self._hold, messages))

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        """Offer messages in two pieces, header and filler; return how many were taken."""
        return self._send(len(heads), partial(self._hold_pieces, heads, fillers))

    def _send(self, offered: int, hold: Callable[[int], int]) -> int:
        """Offer messages to the reader; return how many were taken.

        `hold` takes the next ones, from a number on, and returns how many.
        """
        deadline, taken = time.monotonic() + MAX_SEND_S, 0
        if not self._accept_reader():
            return 0
        while self._flush(deadline) and self._reader is not None and taken < offered:
            taken += hold(taken)
        self._taken += taken
        return taken

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        if self._held and self._accept_reader():
            self._flush(time.monotonic())
        return self._taken - self._held, 0

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        self._disconnect()
        self._listener.close()

    def _accept_reader(self) -> bool:
        """Accept the newest reader in place of the one before; return whether there is one."""
        with contextlib.suppress(BlockingIOError):
            while True:
                newest, _ = self._listener.accept()
                self._disconnect()
                self._set_reader(newest)
        if self._reader is not None and _gone(self._reader):
            self._disconnect()
        return self._reader is not None

    def _hold(self, messages: Sequence[bytes], first: int) -> int:
        """Take the next of the messages, as one piece."""
        count = max(1, min(len(messages) - first, JOINED_BYTES // len(messages[first])))
        return self._take([b"\n".join([*messages[first : first + count], b""])], 1, count)

    def _hold_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler], first: int) -> int:
        """Take the next of the messages without copying their pieces."""
        count = max(
            1, min(len(heads) - first, GATHERED_BYTES // (HEADER_BYTES + len(fillers[first])), MAX_BUFFERS // 3)
        )
        if count == 1:  # of 100 kB, every µs of this way is a 30th
            return self._take([heads[first], fillers[first], b"\n"], 3, 1)
        pairs = zip(heads[first : first + count], fillers[first : first + count], strict=True)
        return self._take([part for head, rest in pairs for part in (head, rest, b"\n")], 3, count)

    def _take(self, buffers: list[Filler], each: int, count: int) -> int:
        """Hold so many messages, whose pieces (`each` of a message) come next."""
        self._buffers, self._each, self._held = buffers, each, count
        self._next, self._written, self._left = 0, 0, sum(map(len, buffers))
        return count

    def _flush(self, deadline: float) -> bool:
        """Write what is held, until the deadline; return whether nothing is held any more."""
        while self._held and self._reader is not None:
            pieces = self._buffers
            if self._next or self._written:
                pieces = [memoryview(pieces[self._next])[self._written :], *pieces[self._next + 1 :]]
            began = time.monotonic()
            try:
                self._advance(os.writev(self._reader.fileno(), pieces))
                self._count_wait(time.monotonic() - began)
            except BlockingIOError:  # none of it within TIMEOUT_S
                return False
            except OSError:
                self._disconnect()
                return False
            if self._held and time.monotonic() > deadline:
                return False
        return not self._held

    def _count_wait(self, took: float) -> None:
        """Count a write that took long, and left the buffer full of unread bytes, as waiting for the reader."""
        if took > NO_WAIT_S and self._reader is not None and _unread(self._reader) > BUFFER_BYTES / 2:
            self.waited += took

    def _advance(self, count: int) -> None:
        """Count so many bytes more as written."""
        self._left -= count
        if self._left == 0:
            self._buffers, self._held = [], 0
            return
        self._written += count
        while self._next < len(self._buffers) and self._written >= len(self._buffers[self._next]):
            self._written -= len(self._buffers[self._next])
            self._next += 1

    def _set_reader(self, reader: socket.socket) -> None:
        reader.settimeout(0)
        reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, round(TIMEOUT_S * 1e6)))
        os.set_blocking(reader.fileno(), True)  # for `writev`, which waits in the kernel, also under gevent
        self._reader = reader

    def _disconnect(self) -> None:
        """Disconnect the reader; the next one begins with the first message that this one did not get in whole."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            if self._each == 1 and self._buffers:
                self._written = bytes(self._buffers[0]).rfind(b"\n", 0, self._written) + 1
            else:
                self._next, self._written = self._next - self._next % self._each, 0
            self._left = sum(map(len, self._buffers[self._next :])) - self._written


def _listen(addresses: Sequence[str]) -> socket.socket:
    """Listen at the first of the addresses that is free. Raises SiteError where none is."""
    refusals: list[str] = []
    for address in addresses:
        try:
            return listen_at(Address.parse(address), backlog=8)
        except OSError as problem:
            refusals.append(f"{address}: {str(problem.strerror).partition(' (')[0]}")  # Python adds the address
    raise SiteError(f"tcp cannot listen at {', '.join(refusals)}")


def _unread(reader: socket.socket) -> int:
    """Return the bytes of a connection that the other end has not got yet, tcp(7) SIOCOUTQ."""
    return int.from_bytes(fcntl.ioctl(reader, termios.TIOCOUTQ, b"\0" * 4), sys.byteorder)


def _gone(reader: socket.socket) -> bool:
    """Return whether the other end has closed; what it may have written is discarded."""
    try:
        return reader.recv(4096, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
