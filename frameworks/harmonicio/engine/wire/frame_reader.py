"""Reads frames off a socket that does not block, into buffers that are used again."""

import sys

from crc32c import crc32c

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, MAX_BODY, SHARED, Frame, Header, Kind, read_header
from frameworks.harmonicio.engine.wire.tls_socket import Line, Secure

SCRATCH_BYTES = 2**16
BUDGET_BYTES = 2**18
"""Of one call: then somebody else has his turn."""
_POOLED_BYTES = 64 * 2**20


class Buffers:
    """Bodies to be received into; one that nobody looks at any more is used again, which spares the kernel fresh pages."""

    def __init__(self, most_bytes: int = _POOLED_BYTES) -> None:
        self._most, self._held = most_bytes, 0
        self._free: dict[int, list[bytearray]] = {}

    def take(self, size: int) -> bytearray:
        """At least `size` bytes, whatever is in them."""
        room = _rounded(size)
        free = self._free.get(room)
        if free:
            self._held -= room
            return free.pop()
        return bytearray(room)

    def give(self, frame: Frame) -> None:
        """Take the buffer of a frame back, unless somebody kept a view of it."""
        buffer, frame.buffer = frame.buffer, None
        frame.body = memoryview(b"")
        if buffer is None or sys.getrefcount(buffer) > 2 or self._held + len(buffer) > self._most:
            return
        self._held += len(buffer)
        self._free.setdefault(len(buffer), []).append(buffer)


def _rounded(size: int) -> int:
    """The next of eight steps to a power of two: few sizes of buffers, little waste."""
    step = max(4096, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class Reader:
    """The receiving half of a connection; nothing longer than `most_body` is accepted."""

    def __init__(self, buffers: Buffers, most_body: int) -> None:
        self.most_body = most_body
        self._buffers = buffers
        self._scratch = bytearray(SCRATCH_BYTES)
        self._view = memoryview(self._scratch)
        self._begin = self._end = 0
        self._header: Header | None = None
        self._buffer = bytearray()
        self._body = memoryview(b"")
        self._filled = 0
        self.received = 0

    def read(self, sock: Line) -> list[Frame]:
        """The frames that have come; raises EOFError at the end of the connection, WireError when it carries something else."""
        frames: list[Frame] = []
        budget = BUDGET_BYTES
        while budget > 0 or (isinstance(sock, Secure) and sock.pending):
            direct = self._header is not None
            target = self._body[self._filled :] if direct else self._view[self._end :]
            try:
                count = sock.recv_into(target)
            except BlockingIOError:
                break
            if count == 0:
                if frames:
                    break  # what came before the end counts; the end is seen again at the next call
                raise EOFError
            budget -= count
            self.received += count
            if direct:
                self._filled += count
                self._finish(frames)
            else:
                self._end += count
                if self._parse(frames) and count < len(target):
                    break
        return frames

    def feed(self, data: bytes) -> list[Frame]:
        """The same for bytes that were received by somebody else: the beginning of a connection."""
        frames: list[Frame] = []
        at = 0
        while at < len(data):
            if self._header is not None:
                part = data[at : at + len(self._body) - self._filled]
                self._body[self._filled : self._filled + len(part)] = part
                self._filled += len(part)
                self._finish(frames)
            else:
                part = data[at : at + SCRATCH_BYTES - self._end]
                self._view[self._end : self._end + len(part)] = part
                self._end += len(part)
                self._parse(frames)
            at += len(part)
        return frames

    def _parse(self, frames: list[Frame]) -> bool:
        """Take whole frames out of the scratch, and the beginning of a longer one; whether nothing of a body is awaited."""
        while self._header is None and self._end - self._begin >= HEADER_BYTES:
            header = read_header(self._view, self._begin)
            if header.size > self.most_body:
                raise WireError(f"a body of {header.size} bytes; at most {self.most_body} are accepted here")
            most = MAX_BODY if header.flags & SHARED else max(1, header.size)
            if header.kind == Kind.DATA and not 0 < header.count <= most:
                raise WireError(f"{header.count} messages in a body of {header.size} bytes")
            self._begin += HEADER_BYTES
            self._start(header)
            self._finish(frames)
        rest = self._end - self._begin
        if self._begin:
            self._scratch[:rest] = self._scratch[self._begin : self._end]
            self._begin, self._end = 0, rest
        return self._header is None

    def _start(self, header: Header) -> None:
        self._header, self._buffer = header, self._buffers.take(header.size)
        self._body = memoryview(self._buffer)[: header.size]
        here = min(header.size, self._end - self._begin)
        self._body[:here] = self._view[self._begin : self._begin + here]
        self._begin += here
        self._filled = here

    def _finish(self, frames: list[Frame]) -> None:
        """Add the frame under way when its body is whole."""
        header = self._header
        if header is None or self._filled < header.size:
            return
        if crc32c(self._body) != header.body_crc:
            raise WireError("the checksum of a body is wrong")
        frames.append(Frame(header, self._body, self._buffer))
        self._header, self._buffer, self._body = None, bytearray(), memoryview(b"")
