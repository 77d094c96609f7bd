"""Memory that a connector shares with the PEs of its host: a batch is copied into it once and read in place.

It is an anonymous file (memfd) that its owner cannot shrink any more, so that a reader never touches a missing page.
A PE of another host, of another user or in a container cannot open it; its Welcome says so, and it gets everything
over the socket.
"""

import contextlib
import fcntl
import mmap
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from frameworks.harmonicio.engine.wire.frame import Buffer

DEFAULT_BYTES = 64 * 2**20
_NAME = "harmonicio"
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW if hasattr(fcntl, "F_SEAL_SHRINK") else 0
_PAGE_BYTES = 4096


class SharedMemoryHandle(Struct, frozen=True):
    """The file descriptor of the memory: its process, and the boot id of that host."""

    boot: str
    pid: int
    fd: int
    size: int


class SharedMemory:
    """The writing end.

    Regions are allocated at the lowest free offset, so that few pages are in use and stay in the CPU caches. After
    `retire` nothing is written any more, because a lost reader may still read there.
    """

    def __init__(self, size: int = DEFAULT_BYTES) -> None:
        self._fd = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.fchmod(self._fd, 0o600)  # memfd_create lets everybody read; /proc/PID/fd would be all that keeps them out
        os.ftruncate(self._fd, size)
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, _SEALS)
        self._map = mmap.mmap(self._fd, size)
        self._view = memoryview(self._map)
        self._free: list[tuple[int, int]] = [(0, size)]
        self._taken: dict[int, int] = {}
        self.retired = False
        self.handle = SharedMemoryHandle(_boot_id(), os.getpid(), self._fd, size)

    def put(self, parts: Sequence[Buffer], size: int) -> int | None:
        """Copy buffers of `size` bytes in all into one region; return its offset, None when there is no free space."""
        needed = -(-size // _PAGE_BYTES) * _PAGE_BYTES
        index = next((index for index, (_, length) in enumerate(self._free) if length >= needed), None)
        if index is None or self.retired:
            return None
        start, length = self._free[index]
        self._free[index : index + 1] = [(start + needed, length - needed)] if length > needed else []
        self._taken[start] = needed
        at = start
        for part in parts:
            self._view[at : at + len(part)] = part
            at += len(part)
        return start

    def read(self, start: int, size: int) -> bytes:
        """Return a copy of `size` bytes at an offset."""
        return bytes(self._view[start : start + size])

    def give_back(self, start: int) -> None:
        """Free a region that is not read any more; does nothing once the memory is retired."""
        if self.retired:
            return
        begin, end = start, start + self._taken.pop(start)
        kept = []
        for first, length in self._free:
            if first + length == begin:
                begin = first
            elif first == end:
                end = first + length
            else:
                kept.append((first, length))
        self._free = sorted([*kept, (begin, end - begin)])

    def retire(self) -> None:
        """Write nothing more; regions can still be read."""
        self.retired = True

    def close(self) -> None:
        """Close the memory; idempotent. Readers keep their mapping."""
        if self._fd >= 0:
            self._view.release()
            self._map.close()
            os.close(self._fd)
            self._fd = -1


def create_shared_memory() -> SharedMemory | None:
    """Return new shared memory; None where the system has no anonymous files."""
    try:
        return SharedMemory()
    except (OSError, AttributeError):
        return None


def open_shared_memory(handle: SharedMemoryHandle) -> memoryview | None:
    """Return the memory of a handle, read-only; None when it cannot be opened or is not sealed as expected."""
    if handle.boot != _boot_id() or not 0 < handle.size <= 2**32:
        return None
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(f"/proc/{int(handle.pid)}/fd/{int(handle.fd)}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(fd)
            sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS == _SEALS
            owned = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
            if owned and status.st_size == handle.size and sealed:
                return memoryview(mmap.mmap(fd, handle.size, prot=mmap.PROT_READ))
        finally:
            os.close(fd)
    return None


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
