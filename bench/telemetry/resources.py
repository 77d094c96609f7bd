"""What the window of a trial took of this machine: CPU, memory, network, disk and garbage collection, by role."""

from msgspec import Struct, field
from msgspec.structs import asdict

from bench.system.host_info import cores
from bench.system.supervisor import Supervisor
from bench.telemetry.cpu import Probe, Snapshot
from bench.telemetry.io import Usage, Used, usage


class ResourceUsage(Struct, frozen=True):
    """As a Measurement says it."""

    cpu: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    memory_slope: dict[str, float] = field(default_factory=dict)
    usage: Used = field(default_factory=dict)


class Account:
    """Kept from its making on; `expense` is what was taken since then."""

    def __init__(self, probe: Probe, supervisor: Supervisor) -> None:
        self._probe, self._supervisor = probe, supervisor
        self._before: tuple[Snapshot, Usage] = probe.snapshot(), usage(supervisor)

    def expense(self, *, alone: bool) -> ResourceUsage:
        """Until now; `alone` unless other hosts of the site share the work, whose CPU nobody here can see."""
        (before, used_before), after = self._before, self._probe.snapshot()
        used = asdict(after.since(before))
        if alone:
            used["available"] = used["seconds"] * cores()
        return ResourceUsage(used, after.memory, _slope(before, after), usage(self._supervisor).since(used_before))


def _slope(before: Snapshot, after: Snapshot) -> dict[str, float]:
    """Bytes/s by which the resident memory of each role grew."""
    seconds = max(1e-9, after.at - before.at)
    return {role: (held - before.memory.get(role, held)) / seconds for role, held in after.memory.items()}
