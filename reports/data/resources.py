"""Resource usage of a cell's deciding trial, by role: CPU, memory, network, disk and garbage collection."""

from bench.model.measurement import Measurement
from bench.units import size_text
from reports.data.derived import get_cpu_seconds
from reports.data.run_data import JudgedTrial

HEADINGS = ("Role", "CPU (cores)", "Memory", "TCP sent", "TCP received", "Disk read", "Disk written", "GC")
ROLES = {
    "framework": "framework",
    "source": "source’s servers",
    "load": "load generator",
    "harness": "harness",
    "kernel": "kernel",
}
MACHINE = {"busy": "whole machine", "steal": "stolen by its host"}


def describe_resources(trial: JudgedTrial | None) -> tuple[tuple[str, ...], ...]:
    """Return a row for each measured role, in the order of HEADINGS; an unknown value is a dash."""
    if trial is None or not trial.measurement.cpu:
        return ()
    return tuple(
        _make_row(trial.measurement, role, name)
        for role, name in (ROLES | MACHINE).items()
        if role in trial.measurement.cpu
    )


def _make_row(measurement: Measurement, role: str, name: str) -> tuple[str, ...]:
    span = get_cpu_seconds(measurement)
    memory, used = measurement.memory.get(role), measurement.usage.get(role, {})
    gc = used.get("gc_seconds")
    volumes = [used.get(kind) for kind in ("sent_bytes", "received_bytes", "read_bytes", "written_bytes")]
    return (
        name,
        f"{measurement.cpu[role] / span:.2f}",
        "–" if memory is None else size_text(memory),
        *("–" if volume is None else f"{size_text(volume / span)}/s" for volume in volumes),
        "–" if gc is None else f"{100 * gc / span:.2g} %",
    )
