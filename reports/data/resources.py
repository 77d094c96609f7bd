"""What the trial behind a cell's answer took of the machine, role by role: the system's part and the harness's beside it."""

from bench.model.measurement import Measurement
from bench.units import size_text
from reports.data.run_data import JudgedTrial

HEADS = ("Role", "CPU (cores)", "Memory", "TCP sent", "TCP received", "Disk read", "Disk written", "GC")
NAMES = {
    "framework": "framework",
    "source": "source’s servers",
    "load": "load generator",
    "harness": "harness",
    "kernel": "kernel",
}
MACHINE = {"busy": "whole machine", "steal": "stolen by its host"}


def costs_of(judged: JudgedTrial | None) -> tuple[tuple[str, ...], ...]:
    """A row for each role, in the order of HEADS; a value that nobody could see is a dash. None where nothing was accounted."""
    if judged is None or not judged.seen.cpu:
        return ()
    seen = judged.seen
    span = seen.cpu.get("seconds") or seen.planned.window
    return tuple(_row(seen, role, name, span) for role, name in (NAMES | MACHINE).items() if role in seen.cpu)


def _row(seen: Measurement, role: str, name: str, span: float) -> tuple[str, ...]:
    memory, used = seen.memory.get(role), seen.usage.get(role, {})
    gc = used.get("gc_seconds")
    volumes = [used.get(kind) for kind in ("sent_bytes", "received_bytes", "read_bytes", "written_bytes")]
    return (
        name,
        f"{seen.cpu[role] / span:.2f}",
        "–" if memory is None else size_text(memory),
        *("–" if volume is None else f"{size_text(volume / span)}/s" for volume in volumes),
        "–" if gc is None else f"{100 * gc / span:.2g} %",
    )
