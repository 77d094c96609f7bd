"""What the kernel says about processes, read from /proc (Linux); standard library only, because the guard imports it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
"""The clock ticks in a second that /proc counts CPU time in."""
_PROC = Path("/proc")


class Stat(NamedTuple):
    """One process at one moment."""

    pid: int
    running: bool
    """False for one that has ended and waits to be reaped"""
    session: int
    own_seconds: float
    """user and system CPU time of the process itself"""
    reaped_seconds: float
    """and of its descendants that have ended and were reaped"""
    created: int
    """clock ticks after boot: with the pid, it names a process for good"""
    resident_bytes: int


def stat_of(pid: int) -> Stat | None:
    """The process of that number, None where there is none."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    field = line.rpartition(b")")[2].split()  # the name before it may contain anything; field[0] is proc(5)'s field 3
    own, reaped = int(field[11]) + int(field[12]), int(field[13]) + int(field[14])
    return Stat(
        pid, field[0] not in b"ZX", int(field[3]), own / TICKS, reaped / TICKS, int(field[19]), int(field[21]) * PAGE
    )


def processes() -> Iterator[Stat]:
    """All running processes that this machine's (or container's) /proc shows."""
    for entry in os.listdir(_PROC):  # noqa: PTH208  half the time of Path.iterdir, and asked many times a second
        if entry.isdigit() and (stat := stat_of(int(entry))) is not None and stat.running:
            yield stat


def members_of(session: int) -> list[Stat]:
    """The running processes of a session, whatever process groups they made for themselves."""
    return [stat for stat in processes() if stat.session == session]


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty where it is gone or somebody else's."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, equals, value in pairs if equals}


def boot_id() -> str:
    """A name of this boot of the machine: pids and creation times mean nothing after the next one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
