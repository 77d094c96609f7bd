"""The journal of the master's queue: acknowledged messages are on the disk, and are restored after a kill -9.

A journal is a folder of segments. A record is a length, a kind, the name of a stream, and either a DATA frame as
received (header and body, each with its checksum) or the range of a session that is done. A segment is deleted when
no frame in it is waiting and no older segment is left; frames that wait for long are moved to the newest segment. A
record that was written only in part is truncated. A torn record, of a master that was killed, ends a segment:
nothing behind it was acknowledged.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from struct import Struct

from crc32c import crc32c

from frameworks.harmonicio.engine.errors import ProtocolError
from frameworks.harmonicio.engine.wire.frame import HEADER_BYTES, Buffer, FrameHeader, decode_header

logger = logging.getLogger(__name__)

SEGMENT_BYTES = 64 * 2**20
_RECORD = Struct("<IBHI")
"""Length of name and data, kind, length of the name, CRC of kind and name."""
_RANGE = Struct("<QQI")
_FRAME, _DONE = 1, 2


@dataclass(slots=True)
class RecordLocation:
    """The position of a frame in the journal."""

    segment: int
    offset: int
    size: int
    record_bytes: int
    """length of the whole record, with the name of its stream"""


@dataclass(slots=True)
class JournalRecord:
    """A record of the journal: a frame that waits, or (header None) a range that is done."""

    c_name: str
    header: FrameHeader | None
    location: RecordLocation
    done: tuple[int, int, int] = (0, 0, 0)


class Journal:
    """Appends records to the newest segment; `commit` makes sure that they are on the disk.

    Args:
        folder: created if it is missing.
        sync: whether `commit` waits for the disk.
        durable: whether the journal outlives the master. Otherwise it has only what does not fit into memory, and
            begins empty.
        segment_bytes: size from which a new segment is begun.

    Raises:
        OSError: the folder cannot be written, or another process has its journal there.
    """

    def __init__(
        self, folder: Path, *, sync: bool = True, durable: bool = True, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(folder)
        self._folder, self._sync, self._segment_bytes = folder, sync and durable, segment_bytes
        self.durable = durable
        if not durable:
            for number in self._segments():
                self._path(number).unlink()
        self._waiting: dict[int, int] = dict.fromkeys(self._segments(), 0)
        self._number = max(self._waiting, default=0)
        self._fd = -1
        self._size = self._needed = 0
        self._sync_error: OSError | None = None
        self._readers: dict[int, int] = {}

    def records(self) -> Iterator[JournalRecord]:
        """Yield all records, the oldest first; to be called once, before anything is appended."""
        for number in sorted(self._waiting):
            yield from _read(self._path(number), number)

    @property
    def newest(self) -> int:
        """Return the number of the segment that is appended to."""
        return self._number

    @property
    def sparse(self) -> bool:
        """Return whether less than half of it is needed; frames that are done in their order never cause that."""
        return len(self._waiting) > 3 + 2 * self._needed // self._segment_bytes

    def oldest(self, max_count: int) -> list[int]:
        """Return the numbers of the oldest segments, without the newest."""
        return sorted(number for number in self._waiting if number < self._number)[:max_count]

    def append_frame(self, c_name: str, head: bytes, body: Buffer) -> RecordLocation:
        """Append a frame, which waits from now on; return its location."""
        name, size = c_name.encode(), len(head) + len(body)
        start = self._append(_FRAME, name, [head, body], size)
        location = RecordLocation(self._number, start, size, _RECORD.size + len(name) + size)
        self.mark_waiting(location)
        return location

    def move(self, c_name: str, location: RecordLocation) -> RecordLocation:
        """Append a frame once more, so that its old segment is not needed; return its new location.

        Raises OSError when it cannot be read or written, or is damaged.
        """
        data = self.read(location)
        if _decode_record(c_name, _FRAME, data, RecordLocation(0, 0, len(data), 0)) is None:
            raise OSError(errno.EIO, f"{self._path(location.segment)} is damaged")
        moved = self.append_frame(c_name, data[:HEADER_BYTES], memoryview(data)[HEADER_BYTES:])
        self.mark_done(location)
        return moved

    def append_done(self, c_name: str, session: int, first: int, count: int) -> None:
        """Append that a range is done."""
        self._append(_DONE, c_name.encode(), [_RANGE.pack(session, first, count)], _RANGE.size)

    def mark_waiting(self, location: RecordLocation) -> None:
        """Count a frame that waits."""
        self._waiting[location.segment] += 1
        self._needed += location.record_bytes

    def mark_done(self, location: RecordLocation) -> None:
        """Count a frame as done; segments that are not needed any more are deleted."""
        self._waiting[location.segment] -= 1
        self._needed -= location.record_bytes
        self.delete_unneeded()

    def delete_unneeded(self) -> None:
        """Delete the segments without waiting frames; restored frames must be counted before."""
        unneeded = list(
            takewhile(lambda number: not self._waiting[number] and number < self._number, sorted(self._waiting))
        )
        if unneeded and self._sync and self._fd >= 0 and self._sync_error is None:
            self._sync_to_disk(self._fd)  # the frames that replace theirs: moved or split ones
        for number in unneeded if self._sync_error is None else ():
            del self._waiting[number]
            if (reader := self._readers.pop(number, None)) is not None:
                os.close(reader)
            self._path(number).unlink(missing_ok=True)

    def read(self, location: RecordLocation) -> bytes:
        """Return header and body of a frame; raises OSError."""
        reader = self._readers.get(location.segment)
        if reader is None:
            reader = self._readers[location.segment] = os.open(self._path(location.segment), os.O_RDONLY)
        return os.pread(reader, location.size, location.offset)

    def commit(self) -> None:
        """Return once everything appended so far is on the disk; may be called from another thread.

        Raises:
            OSError: the disk failed, now or earlier. The kernel does not repeat a failed write, and the next fdatasync
                reports success (Rebello et al., 2020, "Can Applications Recover from fsync Failures?").
        """
        fd = self._fd
        if self._sync and fd >= 0:
            self._sync_to_disk(fd)
        if self._sync_error is not None:
            error = self._sync_error
            raise OSError(error.errno, f"{error.strerror}: the disk did not take the journal; start the master again")

    def close(self) -> None:
        """Close all files; idempotent."""
        for reader in self._readers.values():
            os.close(reader)
        self._readers.clear()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _append(self, kind: int, name: bytes, parts: list[Buffer], size: int) -> int:
        """Write a record; return the offset of its parts."""
        if self._fd < 0 or self._size > self._segment_bytes:
            self._begin_segment()
        head = _RECORD.pack(len(name) + size, kind, len(name), crc32c(name, crc32c(bytes([kind])))) + name
        try:
            _write(self._fd, [memoryview(part) for part in (head, *parts)])
        except OSError:  # a full disk, say
            self._truncate()
            raise
        start = self._size + len(head)
        self._size = start + size
        return start

    def _truncate(self) -> None:
        """Remove a record that was written in part; where that fails, the torn record ends its segment."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._end_segment()

    def _end_segment(self) -> None:
        if self._fd >= 0:
            if self._sync:
                self._sync_to_disk(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _sync_to_disk(self, fd: int) -> None:
        try:
            os.fdatasync(fd)
        except OSError as error:
            if error.errno != errno.EBADF:  # the segment was ended meanwhile, which syncs it, too
                self._sync_error = error

    def _begin_segment(self) -> None:
        self._end_segment()
        self._number += 1
        self._fd = os.open(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._waiting[self._number], self._size = 0, 0

    def _segments(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.journal") if path.stem.isdigit()]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.journal"


def _lock(folder: Path) -> int:
    """Return the open file that keeps other processes out of a folder; raises OSError where another one has it."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise OSError(errno.EBUSY, f"another master uses {folder}") from None
        raise
    return lock


def _write(fd: int, left: list[memoryview]) -> None:
    """Write all buffers; raises OSError when only a part was written."""
    while left:
        written = os.writev(fd, left)
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]


def _read(path: Path, number: int) -> Iterator[JournalRecord]:
    """Yield the complete records of a segment."""
    data = path.read_bytes()
    at = 0
    while at + _RECORD.size <= len(data):
        length, kind, name_length, crc = _RECORD.unpack_from(data, at)
        begin, end = at + _RECORD.size, at + _RECORD.size + length
        name = data[begin : begin + name_length]
        if end > len(data) or crc32c(name, crc32c(bytes([kind]))) != crc:
            break
        start = begin + name_length
        location = RecordLocation(number, start, end - start, end - at)
        record = _decode_record(name.decode(errors="replace"), kind, data, location)
        if record is None:
            break
        yield record
        at = end
    if at < len(data):
        logger.warning("%s ends with %d bytes of a torn record", path.name, len(data) - at)


def _decode_record(c_name: str, kind: int, data: bytes, location: RecordLocation) -> JournalRecord | None:
    start, end = location.offset, location.offset + location.size
    if kind == _DONE and location.size == _RANGE.size:
        return JournalRecord(c_name, None, location, _RANGE.unpack_from(data, start))
    if kind != _FRAME or location.size < HEADER_BYTES:
        return None
    try:
        header = decode_header(data, start)
    except ProtocolError:
        return None
    if (
        header.size != location.size - HEADER_BYTES
        or crc32c(memoryview(data)[start + HEADER_BYTES : end]) != header.body_crc
    ):
        return None
    return JournalRecord(c_name, header, location)
