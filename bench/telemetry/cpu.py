"""CPU time between two moments: of the framework, the load, the source, the harness, and the whole machine.

The kernel counts a core's busy time by samples, one a timer tick, and misses a thread that a timer wakes right after
its tick: of a harness that used 0.35 s in a window of 0.64 s it saw 0.15 s. Its idle time is exact (it is stamped
whenever a core becomes idle), so that the busy time is computed from that. The CPU time of a process comes from its
own clock (clock_getcpuclockid(3)), in nanoseconds; /proc has it in steps of 10 ms.
"""

import os
import time
from collections.abc import Iterable

import psutil
from msgspec import Struct

from bench.system.child import Role
from bench.system.host_info import core_numbers
from bench.system.procfs import Stat, processes, stat_of
from bench.system.supervisor import Supervisor


class CpuUsage(Struct, frozen=True):
    """CPU seconds, user and system, used within `seconds`: by role, and by the whole machine."""

    seconds: float
    framework: float
    load: float
    source: float
    harness: float
    busy: float
    """of the cores that the harness may use, by any process"""
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
    idle: float
    """of all cores since the machine started"""
    steal: float
    cores: int
    kernel: float
    memory: dict[str, float] = {}
    """resident bytes by role; a page shared by several processes counts in each"""

    def since(self, earlier: "CpuSnapshot") -> CpuUsage:
        """Return the CPU seconds used between an earlier snapshot and this one.

        A child that was stopped in between is left out; one that was started in between counts in full.
        """
        steal = self.steal - earlier.steal
        used: dict[Role, float] = {"framework": 0.0, "load": 0.0, "source": 0.0}
        for pid, (role, seconds) in self.children.items():
            used[role] += max(0.0, seconds - earlier.children.get(pid, (role, 0.0))[1])
        return CpuUsage(
            seconds=self.at - earlier.at,
            harness=self.harness - earlier.harness,
            busy=max(0.0, (self.at - earlier.at) * self.cores - (self.idle - earlier.idle) - steal),
            steal=steal,
            kernel=max(0.0, self.kernel - earlier.kernel),
            **used,
        )


class CpuProbe:
    """Reads the CPU counters of the harness and of the children of a Supervisor, in a few milliseconds."""

    def __init__(self, supervisor: Supervisor, harness: int | None = None) -> None:
        self._supervisor, self._harness = supervisor, harness or os.getpid()

    def snapshot(self) -> CpuSnapshot:
        """Return the counters as they are now."""
        kernel = 0.0
        sessions = {child.pid: 0.0 for child in self._supervisor.children}
        resident = dict.fromkeys(sessions, 0)
        for stat in processes(ended=True):
            if stat.is_kernel_thread:
                kernel += _own_seconds(stat)
            elif stat.session in sessions:
                sessions[stat.session] += _own_seconds(stat) + stat.reaped_seconds
                resident[stat.session] += stat.resident_bytes
        harness = stat_of(self._harness)
        memory = {"harness": float(harness.resident_bytes) if harness else 0.0}
        for child in self._supervisor.children:
            memory[child.role] = memory.get(child.role, 0.0) + resident.get(child.pid, 0)
        at, (idle, steal) = time.monotonic(), _read_machine()
        return CpuSnapshot(
            at=at,
            harness=_own_seconds(harness) if harness else 0.0,  # its reaped children belong to other roles
            children={child.pid: (child.role, sessions.get(child.pid, 0.0)) for child in self._supervisor.children},
            idle=idle,
            steal=steal,
            cores=len(core_numbers()),
            kernel=kernel,
            memory=memory,
        )


def _own_seconds(stat: Stat) -> float:
    """Return the CPU seconds of a process and all its threads, to the nanosecond where its clock can be read."""
    try:
        return time.clock_gettime((~stat.pid << 3) | 2)  # clock_getcpuclockid(3); 2: the time that it was scheduled
    except OSError:
        return stat.own_seconds


def _read_machine() -> tuple[float, float]:
    """Return (idle, stolen) seconds of the cores that the harness may use, since the machine started."""
    times = psutil.cpu_times(percpu=True)
    used = [times[number] for number in core_numbers() if number < len(times)]
    return sum(core.idle + core.iowait for core in used), sum(core.steal for core in used)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU seconds, user and system, of these processes and the children they have reaped.

    A process that is gone counts 0.
    """
    stats = (stat_of(pid) for pid in pids)
    return sum(stat.own_seconds + stat.reaped_seconds for stat in stats if stat is not None)
