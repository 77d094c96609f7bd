"""Resource usage of a cell's deciding trial by role and by host: CPU, memory, network, disk and garbage collection."""

from collections.abc import Mapping

from bench.model.measurement import Measurement
from bench.units import size_text
from reports.data.derived import get_cpu_seconds
from reports.data.run_data import JudgedTrial

HEADINGS = ("Role", "CPU (cores)", "Memory", "Sent", "Received", "Disk read", "Disk written", "GC")
ROLES = {
    "framework": "framework",
    "source": "source’s servers",
    "load": "load generator",
    "harness": "harness",
    "kernel": "kernel",
}
MACHINE = {"busy": "whole machine", "steal": "stolen by its host"}


def describe_resources(trial: JudgedTrial | None) -> tuple[tuple[str, ...], ...]:
    """Return a row for each role and each host of the site, in the order of HEADINGS; an unknown value is a dash."""
    if trial is None:
        return ()
    measured = trial.measurement
    roles = [(role, name) for role, name in (ROLES | MACHINE).items() if role in measured.cpu]
    return (
        *(_make_row(measured, role, name) for role, name in roles),
        *(_make_host_row(name, used) for name, used in sorted(measured.hosts.items()) if used.get("seconds")),
    )


def _make_row(measurement: Measurement, role: str, name: str) -> tuple[str, ...]:
    span = get_cpu_seconds(measurement)
    used = measurement.usage.get(role, {})
    return _format_row(name, measurement.cpu[role], measurement.memory.get(role), used, span)


def _make_host_row(name: str, used: Mapping[str, float]) -> tuple[str, ...]:
    return _format_row(f"host {name}", used.get("busy"), used.get("memory_bytes"), used, used["seconds"])


def _format_row(
    name: str, cpu: float | None, memory: float | None, used: Mapping[str, float], span: float
) -> tuple[str, ...]:
    gc = used.get("gc_seconds")
    volumes = [used.get(kind) for kind in ("sent_bytes", "received_bytes", "read_bytes", "written_bytes")]
    return (
        name,
        "–" if cpu is None else f"{cpu / span:.2f}",
        "–" if memory is None else size_text(memory),
        *("–" if volume is None else f"{size_text(volume / span)}/s" for volume in volumes),
        "–" if gc is None else f"{100 * gc / span:.2g} %",
    )
