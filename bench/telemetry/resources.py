"""Resource usage of a trial's window on this machine: CPU, memory, network, disk and garbage collection, by role."""

from msgspec import Struct, field
from msgspec.structs import asdict

from bench.system.host_info import cores
from bench.system.supervisor import Supervisor
from bench.telemetry.cpu import CpuProbe, CpuSnapshot
from bench.telemetry.io import IoCounters, IoUsage, read_io_counters


class ResourceUsage(Struct, frozen=True):
    """Resource usage by role as a Measurement has it: CPU seconds, resident bytes and their slope (bytes/s), I/O."""

    cpu: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    memory_slope: dict[str, float] = field(default_factory=dict)
    usage: IoUsage = field(default_factory=dict)


class ResourceMeter:
    """Samples the resource counters at construction; `usage()` returns the difference."""

    def __init__(self, probe: CpuProbe, supervisor: Supervisor) -> None:
        self._probe, self._supervisor = probe, supervisor
        self._before: tuple[CpuSnapshot, IoCounters] = probe.snapshot(), read_io_counters(supervisor)

    def usage(self, *, sees_other_work: bool) -> ResourceUsage:
        """Return the usage since construction.

        Args:
            sees_other_work: Whether CPU time that is not ours is other work. Otherwise the available CPU seconds are
                left out: the system itself may have used that time (hosts of the site on this machine, programs that we
                did not start), or nothing of what is measured runs here.
        """
        (before, io_before), after = self._before, self._probe.snapshot()
        cpu = asdict(after.since(before))
        if sees_other_work:
            cpu["available"] = cpu["seconds"] * cores()
        io = read_io_counters(self._supervisor).since(io_before)
        return ResourceUsage(cpu, after.memory, _memory_slope(before, after), io)


def _memory_slope(before: CpuSnapshot, after: CpuSnapshot) -> dict[str, float]:
    """Return the growth of the resident memory of each role in bytes/s."""
    seconds = max(1e-9, after.at - before.at)
    return {role: (resident - before.memory.get(role, resident)) / seconds for role, resident in after.memory.items()}
