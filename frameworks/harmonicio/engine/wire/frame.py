"""Frames: a header of 48 bytes with a checksum of its own, then a body with another; one frame carries a batch of messages.

    magic 4 | version 1 | kind 1 | flags 2 | count 4 | session 8 | first 8 | floor 8 | size 4 | body CRC 4 | header CRC 4

All fields are little-endian, checksums are CRC-32C. The messages of a DATA frame are numbered first, first + 1, ... by their
session (one connector's life); below `floor` the session has nothing unacknowledged any more. With EQUAL set the body is
`count` messages of one length, otherwise it begins with `count` lengths of 4 bytes. With SHARED set the body says where in the
connector's shared memory (`ring`) the messages lie, and what their checksum is. An ACK names such a range, and its body says
how many of it failed and how much may be on its way unacknowledged. Every other kind has a JSON body (`words`).
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from struct import Struct
from typing import Protocol

import msgspec
from crc32c import crc32c

from frameworks.harmonicio.engine.errors import WireError

MAGIC = b"HIO4"
VERSION = 1
EQUAL, SHARED = 1, 2
REFERENCE = Struct("<QII")
"""Where a shared body lies: offset, length, checksum."""
HEADER = Struct("<4sBBHIQQQI")
_SUM = Struct("<I")
HEADER_BYTES = HEADER.size + 2 * _SUM.size
ACK_BODY = Struct("<IIQ")
MAX_BODY = 2**32 - 1
JOINED_BYTES = 16 * 1024
"""Messages shorter than this are copied together; longer ones are handed to the kernel where they lie."""

Buffer = bytes | bytearray | memoryview


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    WELCOME = 2
    DATA = 3
    ACK = 4
    LEASES = 5
    RENEW = 6
    BYE = 7


_KINDS = {int(kind): kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of a header, its checksum verified; `size` is the length of the body."""

    kind: Kind
    flags: int
    count: int
    session: int
    first: int
    floor: int
    size: int
    body_crc: int


def header_bytes(
    kind: Kind, size: int, body_crc: int, *, flags: int = 0, count: int = 0, ids: tuple[int, int, int] = (0, 0, 0)
) -> bytes:
    """An encoded header; `ids` is (session, first, floor)."""
    head = HEADER.pack(MAGIC, VERSION, kind, flags, count, *ids, size) + _SUM.pack(body_crc)
    return head + _SUM.pack(crc32c(head))


def read_header(data: Buffer, at: int = 0) -> Header:
    """The header at an offset of the data; raises WireError when it is none."""
    magic, version, number, flags, count, session, first, floor, size = HEADER.unpack_from(data, at)
    end = at + HEADER_BYTES - _SUM.size
    if magic != MAGIC or crc32c(memoryview(data)[at:end]) != _SUM.unpack_from(data, end)[0]:
        raise WireError("no frame begins where one should")
    if version != VERSION or number not in _KINDS:
        raise WireError(f"frame of version {version} and kind {number}: this side speaks version {VERSION}")
    return Header(_KINDS[number], flags, count, session, first, floor, size, _SUM.unpack_from(data, end - _SUM.size)[0])


class Batch:
    """The messages of a DATA frame as views of one buffer; valid until the function that got it returns, so copy what you keep."""

    def __init__(self, body: memoryview, lengths: Sequence[int] | None, count: int) -> None:
        self._body, self._count = body, count
        self._ends: list[int] | None = None
        if lengths is not None:
            self._ends = _summed(lengths)

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
        """The length that all messages have; None when they differ."""
        return len(self._body) // self._count if self._ends is None else None

    @property
    def payload(self) -> memoryview:
        """All messages, one behind the other."""
        return self._body

    def part(self, first: int, last: int) -> "Batch":
        """The messages from `first` up to, not including, `last`."""
        if (first, last) == (0, self._count):
            return self
        if self._ends is None:
            size = self.message_bytes or 0
            return Batch(self._body[first * size : last * size], None, last - first)
        ends = self._ends
        lengths = [ends[index + 1] - ends[index] for index in range(first, last)]
        return Batch(self._body[ends[first] : ends[last]], lengths, last - first)


def _summed(lengths: Sequence[int]) -> list[int]:
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return ends


@dataclass(slots=True)
class Frame:
    """A frame as it came: its header, and a body whose checksum was verified; `buffer` is what the body lies in."""

    header: Header
    body: memoryview
    buffer: bytearray | None = None

    def batch(self) -> Batch:
        """The messages of a DATA frame; raises WireError when lengths and body do not agree."""
        count, body = self.header.count, self.body
        if self.header.flags & EQUAL:
            if len(body) % count:
                raise WireError(f"{len(body)} bytes are not {count} messages of one length")
            return Batch(body, None, count)
        if len(body) < 4 * count:
            raise WireError("a batch is shorter than the list of its lengths")
        lengths = (
            memoryview(bytes(body[: 4 * count])).cast("I").tolist()
        )  # native order; we run on little-endian machines
        if sum(lengths) != len(body) - 4 * count:
            raise WireError("the lengths of a batch do not add up to it")
        return Batch(body[4 * count :], lengths, count)

    def look_up(self, memory: memoryview | None) -> None:
        """Have the body be the messages that it refers to; raises WireError when they are not there as they should be."""
        if memory is None or len(self.body) != REFERENCE.size:
            raise WireError("a frame refers to memory that is not shared")
        start, size, crc = REFERENCE.unpack(self.body)
        if start + size > len(memory) or not 0 < self.header.count <= size:
            raise WireError("a frame refers to what is beyond the shared memory")
        self.body = memory[start : start + size]
        if crc32c(self.body) != crc:
            raise WireError("the checksum of a shared body is wrong")

    def words(self, kind: type[msgspec.Struct]) -> msgspec.Struct:
        """The body of a control frame; raises WireError when it is not of that kind."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as problem:
            raise WireError(f"a {self.header.kind.name} frame cannot be read: {problem}") from None


@dataclass(slots=True)
class Sealed:
    """A DATA frame ready to be sent, and sent again: its numbers and its buffers, the header first."""

    session: int
    first: int
    count: int
    size: int
    buffers: list[Buffer]
    region: int | None = None
    """where in the shared memory its messages lie"""


class Memory(Protocol):
    """Shared memory, as far as sealing needs it (ring.Ring)."""

    def put(self, parts: Sequence[Buffer], size: int) -> int | None:
        """Copy buffers; where they are, None when there is no room."""


def seal(
    messages: Sequence[Buffer],
    session: int,
    first: int,
    floor: int,
    memory: Memory | None = None,
    *,
    most_bytes: int = MAX_BODY,
) -> Sealed:  # six arguments: lengths are looked at once, here, so the bound has to be known here
    """A DATA frame of these messages; large ones are not copied, unless they could be changed while they are on their way.

    Where their lengths differ it has those that fit into `most_bytes`, one at least; otherwise all of them.
    """
    lengths = set(map(len, messages))
    flags, parts = EQUAL, list[Buffer]()
    size = len(messages[0]) * len(messages)
    if len(lengths) > 1:
        flags = 0
        size = sum(map(len, messages)) + 4 * len(messages)
        if size > most_bytes:
            fitting = max(1, bisect_right(list(accumulate(map(len, messages))), most_bytes - 4 * len(messages)))
            return seal(messages[:fitting], session, first, floor, memory, most_bytes=most_bytes)
        parts.append(array("I", map(len, messages)).tobytes())
    if len(messages) > 1 and max(lengths) < JOINED_BYTES:
        parts.append(b"".join(messages))
    else:
        parts.extend(message if isinstance(message, bytes) else bytes(message) for message in messages)
    ids, crc = (session, first, floor), _crc(parts)
    if memory is not None and size >= JOINED_BYTES and (region := memory.put(parts, size)) is not None:
        body = REFERENCE.pack(region, size, crc)
        head = header_bytes(Kind.DATA, len(body), crc32c(body), flags=flags | SHARED, count=len(messages), ids=ids)
        return Sealed(session, first, len(messages), size, [head, body], region)
    head = header_bytes(Kind.DATA, size, crc, flags=flags, count=len(messages), ids=ids)
    return Sealed(session, first, len(messages), size, [head, *parts])


def unshared(sealed: Sealed, body: bytes) -> Sealed:
    """The same frame with its messages in it, for who cannot read the shared memory."""
    header = read_header(sealed.buffers[0])
    ids = (header.session, header.first, header.floor)
    head = header_bytes(Kind.DATA, len(body), crc32c(body), flags=header.flags & ~SHARED, count=header.count, ids=ids)
    return Sealed(sealed.session, sealed.first, sealed.count, sealed.size, [head, body])


def _crc(parts: Sequence[Buffer]) -> int:
    crc = 0
    for part in parts:
        crc = crc32c(part, crc)
    return crc


def control(kind: Kind, words: msgspec.Struct | None = None) -> bytes:
    """A control frame with its words."""
    body = msgspec.json.encode(words) if words is not None else b""
    return header_bytes(kind, len(body), crc32c(body)) + body


def ack(session: int, first: int, count: int, *, failed: int, credit: tuple[int, int]) -> bytes:
    """An ACK of a range; `credit` is (messages, bytes) that may be unacknowledged."""
    body = ACK_BODY.pack(failed, *credit)
    return header_bytes(Kind.ACK, len(body), crc32c(body), count=count, ids=(session, first, 0)) + body


def read_ack(frame: Frame) -> tuple[int, int, int]:
    """(failed, credit in messages, credit in bytes) of an ACK; raises WireError."""
    if len(frame.body) != ACK_BODY.size:
        raise WireError("an ACK has a body of another length")
    failed, messages, size = ACK_BODY.unpack(frame.body)
    return failed, messages, size
