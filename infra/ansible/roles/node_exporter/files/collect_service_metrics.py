"""Collector of metrics about the services of stream-bench on this host, their limits and the clock.

It writes them for the textfile collector of the Prometheus node exporter.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

SERVICES = Path("/etc/stream-bench/services")
"""Folder with one JSON file for each installed service, written by the role `service`."""


def main() -> None:
    """Write stream-bench.prom atomically into the folder that the command line names."""
    records = [json.loads(path.read_text()) for path in sorted(SERVICES.glob("*.json"))]
    lines = [line for record in records for line in service_metrics(record)]
    target = Path(sys.argv[1]) / "stream-bench.prom"
    part = target.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in [*lines, *clock_metrics()]))
    part.chmod(0o644)
    part.rename(target)


def service_metrics(record: dict[str, str]) -> list[str]:
    """Return the metrics of one service: whether it runs, its version, and its limit of open files."""
    name = record["name"]
    asked = ["--property=MainPID,ExecMainStartTimestamp", "--timestamp=unix"]
    shown = run(["systemctl", "show", *asked, f"{name}.service"]).splitlines()
    state = dict(line.split("=", 1) for line in shown if "=" in line)
    pid = state.get("MainPID", "0")
    is_running = pid != "0"
    started = float(state.get("ExecMainStartTimestamp", "").lstrip("@") or 0) if is_running else None
    version = installed_version(record["artifact"], started)
    lines = [f'stream_bench_service{{name="{name}",version="{version}"}} {int(is_running)}']
    limits = Path(f"/proc/{pid}/limits")
    if is_running and limits.exists():
        files = next(line.split()[3] for line in limits.read_text().splitlines() if line.startswith("Max open files"))
        lines.append(f'stream_bench_files{{name="{name}"}} {files}')
        lines.append(f'stream_bench_files_wanted{{name="{name}"}} {record["nofile"]}')
    return lines


def installed_version(artifact: str, started: float | None) -> str:
    """Return the version of the jar or Python package that a service runs.

    Args:
        artifact: its path without -VERSION.jar or -VERSION.dist-info at the end.
        started: Unix time of the start of the service; None if it does not run.

    Returns:
        The version, with a note if it is newer than the process; "unknown" if there is not exactly one.
    """
    path = Path(artifact)
    name = re.compile(re.escape(path.name) + r"-(\d[^-]*)\.(?:jar|dist-info)")
    found = [(match[1], file) for file in path.parent.glob(f"{path.name}-*") if (match := name.fullmatch(file.name))]
    if len(found) != 1:
        return "unknown"
    version, file = found[0]
    if started is not None and file.stat().st_ctime > started + 1:
        return f"{version} (replaced: restart the service)"
    return version


def clock_metrics() -> list[str]:
    """Return chrony's clock offset and its error bound in seconds; no offset if chrony follows no server.

    The error bound is root dispersion plus half of the root delay, as chrony's documentation of `tracking` defines it.
    """
    fields = run(["chronyc", "-c", "tracking"]).strip().split(",")
    if len(fields) < 12 or fields[2] == "0":
        return ["stream_bench_clock_followed 0"]
    bound = float(fields[11]) + float(fields[10]) / 2
    return [
        "stream_bench_clock_followed 1",
        f"stream_bench_clock_offset_seconds {fields[4]}",
        f"stream_bench_clock_bound_seconds {bound:g}",
    ]


def run(command: list[str]) -> str:
    """Return the output of a command, or an empty text if the command is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


if __name__ == "__main__":
    main()
