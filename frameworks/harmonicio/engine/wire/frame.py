"""Frames: a 48-byte header with its own checksum, and a body with another one; a DATA frame carries a batch of
messages.

    magic 4 | version 1 | kind 1 | flags 2 | count 4 | session 8 | first 8 | low watermark 8 | size 4 | body CRC 4 |
    header CRC 4

All fields are little-endian, checksums are CRC-32C. The messages of a DATA frame are numbered first, first + 1, ...
within their session (the life of one connector); below the low watermark the session has no unacknowledged message,
so that it is never above `first`.
With EQUAL set the body is `count` messages of one length, otherwise it begins with `count` lengths of 4 bytes. With
SHARED set the body is a reference: offset, length and checksum of the messages in the connector's shared memory
(`shared_memory`). An ACK names such a range, of whole frames: one that ends within a frame settles nothing, and its
connection is closed. Its body has the number of messages that failed and the new credit. Every other kind has a JSON
body (`control_messages`).
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from struct import Struct
from typing import Protocol, TypeVar

import msgspec
from crc32c import crc32c

from frameworks.harmonicio.engine.errors import ProtocolError

MAGIC = b"HIO4"
VERSION = 1
EQUAL, SHARED = 1, 2
REFERENCE = Struct("<QII")
"""The body of a SHARED frame: offset, length, checksum."""
HEADER = Struct("<4sBBHIQQQI")
_SUM = Struct("<I")
HEADER_BYTES = HEADER.size + 2 * _SUM.size
ACK_BODY = Struct("<IIQ")
MAX_BODY_BYTES = 2**32 - 1
COPIED_BYTES = 16 * 1024
"""Messages shorter than this are copied into one buffer; longer ones are sent without a copy."""

Buffer = bytes | bytearray | memoryview
Message = TypeVar("Message", bound=msgspec.Struct)


def as_buffer(message: Buffer) -> Buffer:
    """Return a message whose length is its number of bytes; raises TypeError for what has no buffer."""
    if isinstance(message, bytes | bytearray):
        return message
    view = memoryview(message)
    return view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()


def as_buffers(messages: Iterable[Buffer]) -> Sequence[Buffer]:
    """Return messages as of `as_buffer`."""
    listed = messages if isinstance(messages, list | tuple) else list(messages)
    return listed if set(map(type, listed)) <= {bytes} else [as_buffer(message) for message in listed]


class FrameKind(IntEnum):
    """The kind of a frame."""

    HELLO = 1
    WELCOME = 2
    DATA = 3
    ACK = 4
    LEASES = 5
    RENEW = 6
    BYE = 7


_KINDS = {int(kind): kind for kind in FrameKind}


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The fields of a header whose checksum was verified; `size` is the length of the body in bytes."""

    kind: FrameKind
    flags: int
    count: int
    session: int
    first: int
    low_watermark: int
    size: int
    body_crc: int


def encode_header(  # noqa: PLR0913  the fields of a header; a record of them would be made for each frame
    kind: FrameKind, size: int, body_crc: int, *, flags: int = 0, count: int = 0, ids: tuple[int, int, int] = (0, 0, 0)
) -> bytes:
    """Return an encoded header; `ids` is (session, first, low watermark)."""
    head = HEADER.pack(MAGIC, VERSION, kind, flags, count, *ids, size) + _SUM.pack(body_crc)
    return head + _SUM.pack(crc32c(head))


def decode_header(data: Buffer, at: int = 0) -> FrameHeader:
    """Return the header at an offset of the data; raises ProtocolError when there is none."""
    magic, version, number, flags, count, session, first, low, size = HEADER.unpack_from(data, at)
    end = at + HEADER_BYTES - _SUM.size
    if magic != MAGIC or crc32c(memoryview(data)[at:end]) != _SUM.unpack_from(data, end)[0]:
        raise ProtocolError("no valid frame header where one should begin")
    if version != VERSION or number not in _KINDS:
        raise ProtocolError(f"frame of version {version} and kind {number}: this side speaks version {VERSION}")
    if low > first:
        raise ProtocolError(f"a low watermark of {low} above the first message, {first}: nothing tells what is new")
    (body_crc,) = _SUM.unpack_from(data, end - _SUM.size)
    return FrameHeader(_KINDS[number], flags, count, session, first, low, size, body_crc)


class Batch:
    """The messages of a DATA frame as views of one buffer.

    They are valid until the function that is called with them returns: copy what you keep.
    """

    def __init__(self, body: memoryview, lengths: Sequence[int] | None, count: int) -> None:
        self._body, self._count = body, count
        self._ends: list[int] | None = None
        if lengths is not None:
            self._ends = _cumulate(lengths)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> memoryview:
        if not -self._count <= index < self._count:
            raise IndexError(index)
        index %= self._count
        if self._ends is None:
            size = self.message_bytes or 0
            return self._body[index * size : (index + 1) * size]
        return self._body[self._ends[index] : self._ends[index + 1]]

    def __iter__(self) -> Iterator[memoryview]:
        return (self[index] for index in range(self._count))

    @property
    def message_bytes(self) -> int | None:
        """Return the length that all messages have in bytes; None when lengths differ."""
        return len(self._body) // self._count if self._ends is None else None

    @property
    def payload(self) -> memoryview:
        """Return all messages in one buffer, one behind the other."""
        return self._body

    def slice(self, first: int, last: int) -> "Batch":
        """Return the messages from `first` up to, not including, `last`."""
        if (first, last) == (0, self._count):
            return self
        if self._ends is None:
            size = self.message_bytes or 0
            return Batch(self._body[first * size : last * size], None, last - first)
        ends = self._ends
        lengths = [ends[index + 1] - ends[index] for index in range(first, last)]
        return Batch(self._body[ends[first] : ends[last]], lengths, last - first)


def _cumulate(lengths: Sequence[int]) -> list[int]:
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return ends


@dataclass(slots=True)
class Frame:
    """A received frame: its header and a body whose checksum was verified; `buffer` holds the body."""

    header: FrameHeader
    body: memoryview
    buffer: bytearray | None = None

    def batch(self) -> Batch:
        """Return the messages of a DATA frame; raises ProtocolError when lengths and body do not agree."""
        count, body = self.header.count, self.body
        if self.header.flags & EQUAL:
            if len(body) % count:
                raise ProtocolError(f"{len(body)} bytes are not {count} messages of one length")
            return Batch(body, None, count)
        if len(body) < 4 * count:
            raise ProtocolError("a batch is shorter than the list of its lengths")
        # native byte order: only little-endian machines are supported
        lengths = memoryview(bytes(body[: 4 * count])).cast("I").tolist()
        if sum(lengths) != len(body) - 4 * count:
            raise ProtocolError("the lengths of a batch do not add up to it")
        return Batch(body[4 * count :], lengths, count)

    def resolve_shared_body(self, memory: memoryview | None) -> None:
        """Replace a reference body by the messages in `memory`; raises ProtocolError when they are not valid there."""
        if memory is None or len(self.body) != REFERENCE.size:
            raise ProtocolError("a frame refers to memory that is not shared")
        start, size, crc = REFERENCE.unpack(self.body)
        if start + size > len(memory) or not 0 < self.header.count <= size:
            raise ProtocolError("a frame refers beyond the end of the shared memory")
        self.body = memory[start : start + size]
        if crc32c(self.body) != crc:
            raise ProtocolError("the checksum of a shared body is wrong")

    def decode_body(self, message_type: type[Message]) -> Message:
        """Return the control message in the body; raises ProtocolError when it is not of that type."""
        try:
            return msgspec.json.decode(self.body, type=message_type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise ProtocolError(f"a {self.header.kind.name} frame cannot be read: {problem}") from None


@dataclass(slots=True)
class EncodedFrame:
    """An encoded DATA frame that can be sent more than once: its numbers and its buffers, the header first."""

    session: int
    first: int
    count: int
    size: int
    buffers: list[Buffer]
    region: int | None = None
    """offset of its messages in the shared memory; None when they are in `buffers`"""


class MemoryAllocator(Protocol):
    """The part of shared memory that encoding needs (shared_memory.SharedMemory)."""

    def put(self, parts: Sequence[Buffer], size: int) -> int | None:
        """Copy buffers; return their offset, None when there is no free space."""


def encode_frame(  # noqa: PLR0913  lengths are looked at once, here, so the limit has to be known here
    messages: Sequence[Buffer],
    session: int,
    first: int,
    low_watermark: int,
    memory: MemoryAllocator | None = None,
    *,
    max_bytes: int = MAX_BODY_BYTES,
) -> EncodedFrame:
    """Return a DATA frame of messages.

    Large messages are not copied unless they are mutable.

    Args:
        messages: one or more messages.
        session: session of the connector.
        first: number of the first message.
        low_watermark: number below which the session has no unacknowledged message.
        memory: shared memory for large bodies; None to send them over the socket.
        max_bytes: longest body. Where lengths differ the frame has the messages that fit into it, at least one; where
            they are equal it has all of them, but of empty messages one: no reader takes more messages than bytes.
    """
    lengths = set(map(len, messages))
    if lengths == {0}:
        messages = messages[:1]
    flags, parts = EQUAL, list[Buffer]()
    size = len(messages[0]) * len(messages)
    if len(lengths) > 1:
        flags = 0
        size = sum(map(len, messages)) + 4 * len(messages)
        if size > max_bytes:
            fitting = max(1, bisect_right(list(accumulate(map(len, messages))), max_bytes - 4 * len(messages)))
            return encode_frame(messages[:fitting], session, first, low_watermark, memory, max_bytes=max_bytes)
        parts.append(array("I", map(len, messages)).tobytes())
    if len(messages) > 1 and max(lengths) < COPIED_BYTES:
        parts.append(b"".join(messages))
    else:
        parts.extend(message if isinstance(message, bytes) else bytes(message) for message in messages)
    ids, crc = (session, first, low_watermark), _crc(parts)
    if memory is not None and size >= COPIED_BYTES and (region := memory.put(parts, size)) is not None:
        body = REFERENCE.pack(region, size, crc)
        head = encode_header(
            FrameKind.DATA, len(body), crc32c(body), flags=flags | SHARED, count=len(messages), ids=ids
        )
        return EncodedFrame(session, first, len(messages), size, [head, body], region)
    head = encode_header(FrameKind.DATA, size, crc, flags=flags, count=len(messages), ids=ids)
    return EncodedFrame(session, first, len(messages), size, [head, *parts])


def with_inline_body(frame: EncodedFrame, body: bytes) -> EncodedFrame:
    """Return the same frame with its messages in it, for a peer that cannot read the shared memory."""
    header = decode_header(frame.buffers[0])
    ids = (header.session, header.first, header.low_watermark)
    head = encode_header(
        FrameKind.DATA, len(body), crc32c(body), flags=header.flags & ~SHARED, count=header.count, ids=ids
    )
    return EncodedFrame(frame.session, frame.first, frame.count, frame.size, [head, body])


def _crc(parts: Sequence[Buffer]) -> int:
    crc = 0
    for part in parts:
        crc = crc32c(part, crc)
    return crc


def encode_control(kind: FrameKind, message: msgspec.Struct | None = None) -> bytes:
    """Return a control frame with its message."""
    body = msgspec.json.encode(message) if message is not None else b""
    return encode_header(kind, len(body), crc32c(body)) + body


def encode_ack(session: int, first: int, count: int, *, failed: int, credit: tuple[int, int]) -> bytes:
    """Return an ACK of a range; `credit` is (messages, bytes) that may be unacknowledged."""
    body = ACK_BODY.pack(failed, *credit)
    return encode_header(FrameKind.ACK, len(body), crc32c(body), count=count, ids=(session, first, 0)) + body


def decode_ack(frame: Frame) -> tuple[int, int, int]:
    """Return (failed, credit in messages, credit in bytes) of an ACK; raises ProtocolError."""
    if len(frame.body) != ACK_BODY.size:
        raise ProtocolError("an ACK has a body of another length")
    failed, messages, size = ACK_BODY.unpack(frame.body)
    return failed, messages, size
