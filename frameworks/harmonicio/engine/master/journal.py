"""The journal of the master's queue: what it acknowledged is on the disk, and is found again after a kill -9.

A journal is a folder of segments. A record is a length, a kind, a stream's name, and either a DATA frame exactly as it came
(header and body, each with its checksum) or the range of a session that is done. A segment is deleted when nothing in it is
waiting and no older one is left; what waits for long is moved on, to the end. What could be written of a record only in part is
cut off again; a torn record, of a master that was killed, ends a segment: nothing behind it was acknowledged.
"""

import errno
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from struct import Struct

from crc32c import crc32c

from frameworks.harmonicio.engine.errors import WireError
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, Buffer, Header, read_header

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 64 * 2**20
_RECORD = Struct("<IBHI")
"""Length of what follows, kind, length of the name, CRC of kind and name."""
_RANGE = Struct("<QQI")
_FRAME, _DONE = 1, 2


@dataclass(slots=True)
class Place:
    """Where a frame lies."""

    segment: int
    offset: int
    size: int
    record_bytes: int
    """with the name of its stream, and all else that is written with it"""


@dataclass(slots=True)
class Record:
    """What a journal says: a frame that waits, or (header None) a range that is done."""

    c_name: str
    header: Header | None
    place: Place
    done: tuple[int, int, int] = (0, 0, 0)


class Journal:
    """Appends to the newest segment; `commit` makes sure that it is on the disk."""

    def __init__(
        self, folder: Path, *, sync: bool = True, durable: bool = True, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._sync, self._segment_bytes = folder, sync and durable, segment_bytes
        self.durable = durable
        """whether it is to outlive the master; otherwise it only has what memory has no room for, and begins empty"""
        if not durable:
            for number in self._segments():
                self._path(number).unlink()
        self._waiting: dict[int, int] = dict.fromkeys(self._segments(), 0)
        self._number = max(self._waiting, default=0)
        self._fd = -1
        self._size = self._needed = 0
        self._lost: OSError | None = None
        self._readers: dict[int, int] = {}

    def records(self) -> Iterator[Record]:
        """Everything that is in it, the oldest first; to be read once, before anything is appended."""
        for number in sorted(self._waiting):
            yield from _read(self._path(number), number)

    @property
    def newest(self) -> int:
        """The number of the segment that is appended to."""
        return self._number

    @property
    def sparse(self) -> bool:
        """Whether less than half of it is needed. What is done in the order in which it came never makes it so."""
        return len(self._waiting) > 3 + 2 * self._needed // self._segment_bytes

    def oldest(self, most: int) -> list[int]:
        """The numbers of the oldest segments, without the newest."""
        return sorted(number for number in self._waiting if number < self._number)[:most]

    def append_frame(self, c_name: str, head: bytes, body: Buffer) -> Place:
        """Append a frame that waits from now on."""
        name, size = c_name.encode(), len(head) + len(body)
        start = self._append(_FRAME, name, [head, body], size)
        place = Place(self._number, start, size, _RECORD.size + len(name) + size)
        self.is_waiting(place)
        return place

    def move(self, c_name: str, place: Place) -> Place:
        """Append a frame once more, so that it does not need its segment; raises OSError, also when it is not whole any more."""
        data = self.read(place)
        if _record(c_name, _FRAME, data, Place(0, 0, len(data), 0)) is None:
            raise OSError(errno.EIO, f"{self._path(place.segment)} is damaged")
        moved = self.append_frame(c_name, data[:HEADER_BYTES], memoryview(data)[HEADER_BYTES:])
        self.is_done(place)
        return moved

    def append_done(self, c_name: str, session: int, first: int, count: int) -> None:
        """Append that a range needs nothing more."""
        self._append(_DONE, c_name.encode(), [_RANGE.pack(session, first, count)], _RANGE.size)

    def is_waiting(self, place: Place) -> None:
        """Count a frame that is needed, or was found again."""
        self._waiting[place.segment] += 1
        self._needed += place.record_bytes

    def is_done(self, place: Place) -> None:
        """Count a frame that needs nothing more; segments that nobody needs are deleted."""
        self._waiting[place.segment] -= 1
        self._needed -= place.record_bytes
        self.tidy()

    def tidy(self) -> None:
        """Delete the segments that nobody needs; what was found again has to be counted first."""
        unneeded = list(
            takewhile(lambda number: not self._waiting[number] and number < self._number, sorted(self._waiting))
        )
        if unneeded and self._sync and self._fd >= 0 and self._lost is None:
            self._to_disk(self._fd)  # what stands in for them: frames that were moved, or taken apart
        for number in unneeded if self._lost is None else ():
            del self._waiting[number]
            if (reader := self._readers.pop(number, None)) is not None:
                os.close(reader)
            self._path(number).unlink(missing_ok=True)

    def read(self, place: Place) -> bytes:
        """A frame, header and body."""
        reader = self._readers.get(place.segment)
        if reader is None:
            reader = self._readers[place.segment] = os.open(self._path(place.segment), os.O_RDONLY)
        return os.pread(reader, place.size, place.offset)

    def commit(self) -> None:
        """Return once everything appended so far is on the disk; may be called from another thread.

        Raises OSError when the disk did not take it, and from then on: what the kernel could not write it does not try again,
        and the next fdatasync says that all is well (Rebello et al., 2020, "Can Applications Recover from fsync Failures?").
        """
        fd = self._fd
        if self._sync and fd >= 0:
            self._to_disk(fd)
        if self._lost is not None:
            raise OSError(
                self._lost.errno, f"{self._lost.strerror}: the disk did not take the journal; start the master again"
            )

    def close(self) -> None:
        """Idempotent."""
        for reader in self._readers.values():
            os.close(reader)
        self._readers.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _append(self, kind: int, name: bytes, parts: list[Buffer], size: int) -> int:
        """Write a record; the offset of its parts."""
        if self._fd < 0 or self._size > self._segment_bytes:
            self._next_segment()
        head = _RECORD.pack(len(name) + size, kind, len(name), crc32c(name, crc32c(bytes([kind])))) + name
        try:
            _write(self._fd, [memoryview(part) for part in (head, *parts)])
        except OSError:  # a full disk, say
            self._cut_off()
            raise
        start = self._size + len(head)
        self._size = start + size
        return start

    def _cut_off(self) -> None:
        """Take back what was written of a record; where that cannot be, what is torn ends its segment."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._end_segment()

    def _end_segment(self) -> None:
        if self._fd >= 0:
            if self._sync:
                self._to_disk(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _to_disk(self, fd: int) -> None:
        try:
            os.fdatasync(fd)
        except OSError as problem:
            if problem.errno != errno.EBADF:  # the segment was ended meanwhile, and what ends one commits it
                self._lost = problem

    def _next_segment(self) -> None:
        self._end_segment()
        self._number += 1
        self._fd = os.open(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._waiting[self._number], self._size = 0, 0

    def _segments(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.journal") if path.stem.isdigit()]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.journal"


def _write(fd: int, left: list[memoryview]) -> None:
    """Write all of it; raises OSError when only a part went."""
    while left:
        written = os.writev(fd, left)
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]


def _read(path: Path, number: int) -> Iterator[Record]:
    """The whole records of a segment."""
    data = path.read_bytes()
    at = 0
    while at + _RECORD.size <= len(data):
        length, kind, name_length, crc = _RECORD.unpack_from(data, at)
        begin, end = at + _RECORD.size, at + _RECORD.size + length
        name = data[begin : begin + name_length]
        if end > len(data) or crc32c(name, crc32c(bytes([kind]))) != crc:
            break
        start = begin + name_length
        record = _record(name.decode(errors="replace"), kind, data, Place(number, start, end - start, end - at))
        if record is None:
            break
        yield record
        at = end
    if at < len(data):
        logger.warning("%s ends with %d bytes of a torn record", path.name, len(data) - at)


def _record(c_name: str, kind: int, data: bytes, place: Place) -> Record | None:
    start, end = place.offset, place.offset + place.size
    if kind == _DONE and place.size == _RANGE.size:
        return Record(c_name, None, place, _RANGE.unpack_from(data, start))
    if kind != _FRAME or place.size < HEADER_BYTES:
        return None
    try:
        header = read_header(data, start)
    except WireError:
        return None
    if (
        header.size != place.size - HEADER_BYTES
        or crc32c(memoryview(data)[start + HEADER_BYTES : end]) != header.body_crc
    ):
        return None
    return Record(c_name, header, place)
