"""Who used the CPU of this machine between two moments: the framework, the load, the source, the harness, and all together."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from bench.system.procfs import TICKS, processes, stat_of
from bench.system.supervisor import Role, Supervisor

KERNEL_SESSION = 0


class Cpu(Struct, frozen=True):
    """CPU seconds, user and system, that were used within `seconds`; by role, and by the whole machine."""

    seconds: float
    framework: float
    load: float
    source: float
    harness: float
    busy: float
    """of all cores, whoever used them"""
    steal: float
    """that the machine's host gave to somebody else while we wanted them"""
    kernel: float
    """of the kernel's own threads, which write pages and move packets for whoever asked them to"""


class Snapshot(Struct, frozen=True):
    """The accounts at one moment (monotonic seconds)."""

    at: float
    harness: float
    children: dict[int, tuple[Role, float]]
    """of each running child: its role, and the CPU seconds of its session so far"""
    busy: float
    steal: float
    kernel: float
    memory: dict[str, float] = {}
    """resident bytes by role; pages that processes share count in each"""

    def since(self, earlier: "Snapshot") -> Cpu:
        """What was used from the earlier snapshot to this one.

        A child that was stopped in between is left out, one that was started in between counts in full.
        """
        used: dict[Role, float] = {"framework": 0.0, "load": 0.0, "source": 0.0}
        for pid, (role, seconds) in self.children.items():
            used[role] += max(0.0, seconds - earlier.children.get(pid, (role, 0.0))[1])
        return Cpu(
            seconds=self.at - earlier.at,
            harness=self.harness - earlier.harness,
            busy=self.busy - earlier.busy,
            steal=self.steal - earlier.steal,
            kernel=max(0.0, self.kernel - earlier.kernel),
            **used,
        )


class Probe:
    """Reads the accounts of the children of a Supervisor and of the harness itself, from /proc, in a few milliseconds."""

    def __init__(self, supervisor: Supervisor, harness: int | None = None) -> None:
        self._supervisor, self._harness = supervisor, harness or os.getpid()

    def snapshot(self) -> Snapshot:
        """The accounts now."""
        sessions: dict[int, float] = {}
        resident: dict[int, int] = {}
        for stat in processes():
            sessions[stat.session] = sessions.get(stat.session, 0.0) + stat.own_seconds + stat.reaped_seconds
            resident[stat.session] = resident.get(stat.session, 0) + stat.resident_bytes
        harness = stat_of(self._harness)
        memory = {"harness": float(harness.resident_bytes) if harness else 0.0}
        for child in self._supervisor.children:
            memory[child.role] = memory.get(child.role, 0.0) + resident.get(child.pid, 0)
        busy, steal = _machine_seconds()
        return Snapshot(
            at=time.monotonic(),
            harness=harness.own_seconds if harness else 0.0,  # what it has reaped were children, on other accounts
            children={child.pid: (child.role, sessions.get(child.pid, 0.0)) for child in self._supervisor.children},
            busy=busy,
            steal=steal,
            kernel=sessions.get(KERNEL_SESSION, 0.0),
            memory=memory,
        )


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system CPU seconds of these processes and of the children that they have reaped; one that is gone counts 0."""
    found = (stat_of(pid) for pid in pids)
    return sum(stat.own_seconds + stat.reaped_seconds for stat in found if stat is not None)


def _machine_seconds() -> tuple[float, float]:
    """(busy, steal) CPU seconds of all cores since boot, proc(5) /proc/stat."""
    line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) / TICKS for word in line.split()[1:9])
    return user + nice + system + irq + softirq, steal
