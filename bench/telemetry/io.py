"""What roles took of network and disk, and how long their JVMs collected garbage, between two moments; besides CPU and memory."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from bench.system.procfs import processes
from bench.system.supervisor import Supervisor
from bench.telemetry.jvm_gc import gc_seconds
from bench.telemetry.tcp_counters import Carried, carried, sockets_of

HARNESS = "harness"
Used = dict[str, dict[str, float]]
"""By role: sent_bytes, received_bytes, read_bytes, written_bytes, gc_seconds, and of the bytes those that went to other hosts
(link_sent_bytes, link_received_bytes); what cannot be known is left out."""
_LINK = ("link_sent_bytes", "link_received_bytes")


class Usage(Struct, frozen=True):
    """The counters of all roles at one moment."""

    sockets: dict[str, dict[int, Carried]]
    """by role and inode; no role where the kernel does not tell"""
    disk: dict[str, tuple[int, int]]
    """by role: bytes read from and written to disks"""
    gc: dict[str, dict[int, float]]
    """by role and process: seconds; JVMs only"""

    def since(self, earlier: "Usage") -> Used:
        """What was used from the earlier moment to this one.

        A socket that was closed in between is left out: short connections are not seen. Disk bytes are those that went through the
        cache to a disk, or will; nothing in memory counts.
        """
        used: Used = {}
        for role, now in self.sockets.items():
            before = earlier.sockets.get(role, {})
            new = [(found, before.get(inode, Carried(0, 0))) for inode, found in now.items()]
            for names, some in (
                (("sent_bytes", "received_bytes"), new),
                (_LINK, [pair for pair in new if pair[0].outside]),
            ):
                sent = sum(max(0, one.sent - was.sent) for one, was in some)
                received = sum(max(0, one.received - was.received) for one, was in some)
                used.setdefault(role, {}).update(zip(names, (float(sent), float(received)), strict=True))
        for role, (read, written) in self.disk.items():
            was = earlier.disk.get(role, (0, 0))
            used.setdefault(role, {}).update(
                read_bytes=float(max(0, read - was[0])), written_bytes=float(max(0, written - was[1]))
            )
        for role, machines in self.gc.items():
            was_gc = earlier.gc.get(role, {})
            used.setdefault(role, {})["gc_seconds"] = sum(
                max(0.0, now - was_gc.get(pid, 0.0)) for pid, now in machines.items()
            )
        return used


def usage(supervisor: Supervisor) -> Usage:
    """The counters of the harness and of all children's sessions now, by role; takes some milliseconds."""
    pids: dict[str, list[int]] = {HARNESS: [os.getpid()]}
    role_of = {child.pid: child.role for child in supervisor.children}
    for stat in processes():
        if stat.session in role_of:
            pids.setdefault(role_of[stat.session], []).append(stat.pid)
    everywhere = carried()
    disks = {role: _disk_bytes(members) for role, members in pids.items()}
    gc = {
        role: {pid: found for pid in members if (found := gc_seconds(pid)) is not None}
        for role, members in pids.items()
    }
    return Usage(
        sockets={} if everywhere is None else {role: _of(everywhere, members) for role, members in pids.items()},
        disk={role: found for role, found in disks.items() if found is not None},
        gc={role: found for role, found in gc.items() if found},
    )


def _of(everywhere: dict[int, Carried], pids: Iterable[int]) -> dict[int, Carried]:
    return {inode: everywhere[inode] for inode in sockets_of(pids) if inode in everywhere}


def _disk_bytes(pids: Iterable[int]) -> tuple[int, int] | None:
    """(read, written) of processes and of the children that they have reaped; None where nobody may look."""
    found = [lines for lines in map(_io_of, pids) if lines]
    if not found:
        return None
    return sum(lines["read_bytes"] for lines in found), sum(lines["write_bytes"] for lines in found)


def _io_of(pid: int) -> dict[str, int]:
    """proc(5) /proc/PID/io; empty where the process is gone or somebody else's."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
