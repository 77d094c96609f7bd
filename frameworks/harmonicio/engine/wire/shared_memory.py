"""Memory that a connector shares with the PEs of its own host: a batch is copied into it once, and read where it lies.

It is an anonymous file (memfd) that its maker cannot shrink any more: a reader never touches what is not there. A PE of another
host, of another user or in a container cannot open it, says so in its welcome, and is sent everything over the socket.
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

BYTES = 64 * 2**20
_NAME = "harmonicio"
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW if hasattr(fcntl, "F_SEAL_SHRINK") else 0
_STEP = 4096


class Shared(Struct, frozen=True):
    """Where the memory can be opened: a file of a process of the host whose boot id this is."""

    boot: str
    pid: int
    fd: int
    size: int


class Ring:
    """The writing end. Regions are taken from the lowest address that is free, so that few are used, and stay in the caches."""

    def __init__(self, size: int = BYTES) -> None:
        self._fd = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self._fd, size)
        fcntl.fcntl(self._fd, fcntl.F_ADD_SEALS, _SEALS)
        self._map = mmap.mmap(self._fd, size)
        self._view = memoryview(self._map)
        self._free: list[tuple[int, int]] = [(0, size)]
        self._taken: dict[int, int] = {}
        self.shared = Shared(_boot_id(), os.getpid(), self._fd, size)

    def put(self, parts: Sequence[Buffer], size: int) -> int | None:
        """Copy buffers, `size` bytes in all, one behind the other; where they are, None when there is no room."""
        room = -(-size // _STEP) * _STEP
        index = next((index for index, (_, length) in enumerate(self._free) if length >= room), None)
        if index is None:
            return None
        start, length = self._free[index]
        self._free[index : index + 1] = [(start + room, length - room)] if length > room else []
        self._taken[start] = room
        at = start
        for part in parts:
            self._view[at : at + len(part)] = part
            at += len(part)
        return start

    def read(self, start: int, size: int) -> bytes:
        """A copy of what lies there."""
        return bytes(self._view[start : start + size])

    def give_back(self, start: int) -> None:
        """Nobody reads there any more."""
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

    def close(self) -> None:
        """Idempotent; who reads it may go on."""
        if self._fd >= 0:
            self._view.release()
            self._map.close()
            os.close(self._fd)
            self._fd = -1


def ring() -> Ring | None:
    """A new one; None where the system has no such files."""
    try:
        return Ring()
    except (OSError, AttributeError):
        return None


def opened(shared: Shared) -> memoryview | None:
    """The memory, to be read only; None when it cannot be opened, or is not what it should be."""
    if shared.boot != _boot_id() or not 0 < shared.size <= 2**32:
        return None
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(f"/proc/{int(shared.pid)}/fd/{int(shared.fd)}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            sealed = fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS == _SEALS
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and found.st_size == shared.size and sealed:
                return memoryview(mmap.mmap(fd, shared.size, prot=mmap.PROT_READ))
        finally:
            os.close(fd)
    return None


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
