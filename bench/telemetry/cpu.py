"""CPU time between two moments: of the framework, the load, the source, the harness, and the whole machine."""

import os
import time
from collections.abc import Iterable

import psutil
from msgspec import Struct

from bench.system.procfs import processes, stat_of
from bench.system.supervisor import Role, Supervisor

KERNEL_SESSION = 0


class CpuUsage(Struct, frozen=True):
    """CPU seconds, user and system, used within `seconds`: by role, and by the whole machine."""

    seconds: float
    framework: float
    load: float
    source: float
    harness: float
    busy: float
    """of all cores, by any process"""
    steal: float
    """taken by the hypervisor for other virtual machines"""
    kernel: float
    """of the kernel's own threads, which write pages and move packets on behalf of processes"""


class CpuSnapshot(Struct, frozen=True):
    """The CPU counters at one moment (monotonic seconds)."""

    at: float
    harness: float
    children: dict[int, tuple[Role, float]]
    """by pid of each running child: its role, and the CPU seconds of its session so far"""
    busy: float
    steal: float
    kernel: float
    memory: dict[str, float] = {}
    """resident bytes by role; a page shared by several processes counts in each"""

    def since(self, earlier: "CpuSnapshot") -> CpuUsage:
        """Return the CPU seconds used between an earlier snapshot and this one.

        A child that was stopped in between is left out; one that was started in between counts in full.
        """
        used: dict[Role, float] = {"framework": 0.0, "load": 0.0, "source": 0.0}
        for pid, (role, seconds) in self.children.items():
            used[role] += max(0.0, seconds - earlier.children.get(pid, (role, 0.0))[1])
        return CpuUsage(
            seconds=self.at - earlier.at,
            harness=self.harness - earlier.harness,
            busy=self.busy - earlier.busy,
            steal=self.steal - earlier.steal,
            kernel=max(0.0, self.kernel - earlier.kernel),
            **used,
        )


class CpuProbe:
    """Reads the CPU counters of the harness and of the children of a Supervisor, in a few milliseconds."""

    def __init__(self, supervisor: Supervisor, harness: int | None = None) -> None:
        self._supervisor, self._harness = supervisor, harness or os.getpid()

    def snapshot(self) -> CpuSnapshot:
        """Return the counters as they are now."""
        sessions: dict[int, float] = {}
        resident: dict[int, int] = {}
        for stat in processes():
            sessions[stat.session] = sessions.get(stat.session, 0.0) + stat.own_seconds + stat.reaped_seconds
            resident[stat.session] = resident.get(stat.session, 0) + stat.resident_bytes
        harness = stat_of(self._harness)
        memory = {"harness": float(harness.resident_bytes) if harness else 0.0}
        for child in self._supervisor.children:
            memory[child.role] = memory.get(child.role, 0.0) + resident.get(child.pid, 0)
        machine = psutil.cpu_times()
        return CpuSnapshot(
            at=time.monotonic(),
            harness=harness.own_seconds if harness else 0.0,  # its reaped children belong to other roles
            children={child.pid: (child.role, sessions.get(child.pid, 0.0)) for child in self._supervisor.children},
            busy=machine.user + machine.nice + machine.system + machine.irq + machine.softirq,
            steal=machine.steal,
            kernel=sessions.get(KERNEL_SESSION, 0.0),
            memory=memory,
        )


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds, user and system, of these processes and the children they have reaped.

    A process that is gone counts 0.
    """
    stats = (stat_of(pid) for pid in pids)
    return sum(stat.own_seconds + stat.reaped_seconds for stat in stats if stat is not None)
