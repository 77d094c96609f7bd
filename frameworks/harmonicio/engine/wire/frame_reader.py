"""Reading frames from a non-blocking socket into reusable buffers."""

import sys

from crc32c import crc32c

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.frame import (
    HEADER_BYTES,
    MAX_BODY_BYTES,
    SHARED,
    Frame,
    FrameHeader,
    FrameKind,
    decode_header,
)
from frameworks.harmonicio.engine.wire.tls_socket import StreamSocket, TlsSocket

SCRATCH_BYTES = 2**16
MAX_READ_BYTES = 2**18
"""Bytes read in one call, so that one connection does not keep the others waiting."""
_MAX_POOLED_BYTES = 64 * 2**20


class BufferPool:
    """Buffers for received bodies; one without references is reused, which spares the kernel fresh pages."""

    def __init__(self, max_bytes: int = _MAX_POOLED_BYTES) -> None:
        self._max_bytes, self._free_bytes = max_bytes, 0
        self._free: dict[int, list[bytearray]] = {}

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes with undefined content."""
        capacity = _round_up(size)
        free = self._free.get(capacity)
        if free:
            self._free_bytes -= capacity
            return free.pop()
        return bytearray(capacity)

    def give_back(self, frame: Frame) -> None:
        """Take the buffer of a frame back, unless a view of it is still in use."""
        buffer, frame.buffer = frame.buffer, None
        frame.body = memoryview(b"")
        if buffer is None or sys.getrefcount(buffer) > 2 or self._free_bytes + len(buffer) > self._max_bytes:
            return
        self._free_bytes += len(buffer)
        self._free.setdefault(len(buffer), []).append(buffer)


def _round_up(size: int) -> int:
    """Return the next of eight steps to a power of two: few buffer sizes, little waste."""
    step = max(4096, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class FrameReader:
    """The receiving half of a connection; a body longer than `max_body_bytes` is an error."""

    def __init__(self, buffers: BufferPool, max_body_bytes: int) -> None:
        self.max_body_bytes = max_body_bytes
        self._buffers = buffers
        self._scratch = bytearray(SCRATCH_BYTES)
        self._view = memoryview(self._scratch)
        self._begin = self._end = 0
        self._header: FrameHeader | None = None
        self._buffer = bytearray()
        self._body = memoryview(b"")
        self._filled = 0

    def read(self, sock: StreamSocket) -> list[Frame]:
        """Return the frames received so far.

        Raises:
            EOFError: the connection has ended.
            ProtocolError: the data is not a valid frame.
            OSError: the connection broke.
        """
        frames: list[Frame] = []
        budget = MAX_READ_BYTES
        while budget > 0 or (isinstance(sock, TlsSocket) and sock.pending):
            direct = self._header is not None
            target = self._body[self._filled :] if direct else self._view[self._end :]
            try:
                count = sock.recv_into(target)
            except BlockingIOError:
                break
            if count == 0:
                if frames:
                    break  # frames before the end count; the next call reads the end again
                raise EOFError
            budget -= count
            if direct:
                self._filled += count
                self._finish(frames)
            else:
                self._end += count
                if self._parse(frames) and count < len(target):
                    break
        return frames

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames in bytes that were already received: the beginning of a connection."""
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
        """Take the complete frames from the scratch buffer; return whether no incomplete body is left."""
        while self._header is None and self._end - self._begin >= HEADER_BYTES:
            header = decode_header(self._view, self._begin)
            if header.size > self.max_body_bytes:
                raise ProtocolError(f"a body of {header.size} bytes; at most {self.max_body_bytes} are accepted here")
            max_count = MAX_BODY_BYTES if header.flags & SHARED else max(1, header.size)
            if header.kind == FrameKind.DATA and not 0 < header.count <= max_count:
                raise ProtocolError(f"{header.count} messages in a body of {header.size} bytes")
            self._begin += HEADER_BYTES
            self._start(header)
            self._finish(frames)
        rest = self._end - self._begin
        if self._begin:
            self._scratch[:rest] = self._scratch[self._begin : self._end]
            self._begin, self._end = 0, rest
        return self._header is None

    def _start(self, header: FrameHeader) -> None:
        self._header, self._buffer = header, self._buffers.take(header.size)
        self._body = memoryview(self._buffer)[: header.size]
        here = min(header.size, self._end - self._begin)
        self._body[:here] = self._view[self._begin : self._begin + here]
        self._begin += here
        self._filled = here

    def _finish(self, frames: list[Frame]) -> None:
        """Append the current frame once its body is complete."""
        header = self._header
        if header is None or self._filled < header.size:
            return
        if crc32c(self._body) != header.body_crc:
            raise ProtocolError("the checksum of a body is wrong")
        frames.append(Frame(header, self._body, self._buffer))
        self._header, self._buffer, self._body = None, bytearray(), memoryview(b"")
