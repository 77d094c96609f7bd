"""Processes as the kernel shows them in /proc (Linux).

Standard library only, because the reaper imports it (`python -I -S`). psutil reads the same files, at two to three
times the cost of a sample (docs/decisions/0104-procfs-stays-our-own.md).
"""

import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
"""Clock ticks per second, the unit of CPU times in /proc."""
PAGE = os.sysconf("SC_PAGE_SIZE")
"""Bytes of a memory page, the unit of resident memory in /proc."""
_PROC = Path("/proc")
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of the kernel's include/linux/sched.h, a flag of proc(5) /proc/PID/stat."""


class Stat(NamedTuple):
    """One process at one moment, proc(5) /proc/PID/stat."""

    pid: int
    running: bool
    """false for a process that has ended and waits to be reaped"""
    session: int
    own_seconds: float
    """user and system CPU time of the process itself"""
    reaped_seconds: float
    """user and system CPU time of its descendants that have ended and were reaped"""
    created: int
    """clock ticks after boot; pid and creation time together identify a process until the next boot"""
    resident_bytes: int
    is_kernel_thread: bool


def stat_of(pid: int) -> Stat | None:
    """Return the process with this pid; None if there is none."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    field = line.rpartition(b")")[2].split()  # the name before it may contain anything; field[0] is proc(5)'s field 3
    own, reaped = int(field[11]) + int(field[12]), int(field[13]) + int(field[14])
    return Stat(
        pid, field[0] not in b"ZX", int(field[3]), own / TICKS, reaped / TICKS, int(field[19]), int(field[21]) * PAGE,
        bool(int(field[6]) & _KERNEL_THREAD),
    )  # fmt: skip


def processes(*, ended: bool = False) -> Iterator[Stat]:
    """Yield all running processes that the /proc of this machine (or container) shows.

    Args:
        ended: Yield those that have ended and wait to be reaped, too: nobody else's CPU time has theirs yet.
    """
    for entry in os.listdir(_PROC):  # noqa: PTH208  takes half the time of Path.iterdir, and runs many times a second
        if entry.isdigit() and (stat := stat_of(int(entry))) is not None and (stat.running or ended):
            yield stat


def members_of(session: int) -> list[Stat]:
    """Return the running processes of a session, whatever process groups they made for themselves."""
    return [stat for stat in processes() if stat.session == session]


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if it is gone or belongs to another user."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, equals, value in pairs if equals}


class OutOfMemory:
    """Tells if the kernel has killed a process because memory ran out, since this object was made."""

    def __init__(self) -> None:
        self._before = _oom_kills()

    def remark_on(self, reason: str) -> str:
        """Return the reason for the end of something, with a remark if the kernel has killed a process meanwhile."""
        if _oom_kills() == self._before:
            return reason
        return f"{reason}; meanwhile memory ran out, and the kernel killed a process"


def _oom_kills() -> int:
    """Return how often the kernel did that since the boot (proc(5), vmstat), for any control group; 0 if unknown."""
    try:
        lines = (_PROC / "vmstat").read_bytes().splitlines()
    except OSError:  # not every container shows it
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(b"oom_kill ")), 0)


@functools.cache
def boot_id() -> str:
    """Return the kernel's name of this boot; pids and creation times mean nothing after the next one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
