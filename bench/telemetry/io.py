"""I/O counters by role: bytes over the network and to disks, and seconds of garbage collection, between two moments."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from bench.system.procfs import processes
from bench.system.supervisor import Supervisor
from bench.telemetry.jvm_gc import gc_seconds
from bench.telemetry.tcp_counters import TcpBytes, read_tcp_bytes, socket_inodes

HARNESS = "harness"
IoUsage = dict[str, dict[str, float]]
"""By role: sent_bytes, received_bytes, read_bytes, written_bytes, gc_seconds, and the part of the network bytes that
went to other hosts (link_sent_bytes, link_received_bytes). A value that cannot be determined is missing."""
_LINK = ("link_sent_bytes", "link_received_bytes")


class IoCounters(Struct, frozen=True):
    """The counters of all roles at one moment."""

    sockets: dict[str, dict[int, TcpBytes]]
    """by role and inode; empty if the kernel does not provide them"""
    disk: dict[str, tuple[int, int]]
    """by role: bytes read from and written to disks"""
    gc: dict[str, dict[int, float]]
    """by role and pid: seconds; JVMs only"""

    def since(self, earlier: "IoCounters") -> IoUsage:
        """Return the usage between an earlier moment and this one.

        A socket that was closed in between is left out, so that short connections do not count. Disk bytes are those
        that went through the page cache to a disk, or will; files in memory do not count.
        """
        used: IoUsage = {}
        for role, now in self.sockets.items():
            before = earlier.sockets.get(role, {})
            pairs = [(tcp, before.get(inode, TcpBytes(0, 0))) for inode, tcp in now.items()]
            for names, counted in (
                (("sent_bytes", "received_bytes"), pairs),
                (_LINK, [pair for pair in pairs if pair[0].outside]),
            ):
                sent = sum(max(0, tcp.sent - was.sent) for tcp, was in counted)
                received = sum(max(0, tcp.received - was.received) for tcp, was in counted)
                used.setdefault(role, {}).update(zip(names, (float(sent), float(received)), strict=True))
        for role, (read, written) in self.disk.items():
            was = earlier.disk.get(role, (0, 0))
            used.setdefault(role, {}).update(
                read_bytes=float(max(0, read - was[0])), written_bytes=float(max(0, written - was[1]))
            )
        for role, jvms in self.gc.items():
            was_gc = earlier.gc.get(role, {})
            used.setdefault(role, {})["gc_seconds"] = sum(
                max(0.0, now - was_gc.get(pid, 0.0)) for pid, now in jvms.items()
            )
        return used


def read_io_counters(supervisor: Supervisor) -> IoCounters:
    """Return the counters of the harness and of the sessions of all children, by role; takes some milliseconds."""
    pids: dict[str, list[int]] = {HARNESS: [os.getpid()]}
    role_of = {child.pid: child.role for child in supervisor.children}
    for stat in processes():
        if stat.session in role_of:
            pids.setdefault(role_of[stat.session], []).append(stat.pid)
    tcp = read_tcp_bytes()
    disks = {role: _disk_bytes(members) for role, members in pids.items()}
    gc = {
        role: {pid: seconds for pid in members if (seconds := gc_seconds(pid)) is not None}
        for role, members in pids.items()
    }
    return IoCounters(
        sockets={} if tcp is None else {role: _tcp_bytes_of(members, tcp) for role, members in pids.items()},
        disk={role: both for role, both in disks.items() if both is not None},
        gc={role: jvms for role, jvms in gc.items() if jvms},
    )


def _tcp_bytes_of(pids: Iterable[int], tcp: dict[int, TcpBytes]) -> dict[int, TcpBytes]:
    return {inode: tcp[inode] for inode in socket_inodes(pids) if inode in tcp}


def _disk_bytes(pids: Iterable[int]) -> tuple[int, int] | None:
    """Return (read, written) bytes of processes and the children they have reaped; None without permission."""
    counters = [lines for lines in map(_io_of, pids) if lines]
    if not counters:
        return None
    return sum(lines["read_bytes"] for lines in counters), sum(lines["write_bytes"] for lines in counters)


def _io_of(pid: int) -> dict[str, int]:
    """Return proc(5) /proc/PID/io; empty if the process is gone or belongs to another user."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
