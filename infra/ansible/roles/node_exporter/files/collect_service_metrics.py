"""Collector of metrics about the services of stream-bench on this host, their limits and the clock.

It writes them for the textfile collector of the Prometheus node exporter.
"""

import json
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
    name, version = record["name"], record["version"]
    pid = run(["systemctl", "show", "--property=MainPID", "--value", f"{name}.service"]).strip()
    is_running = pid not in ("", "0")
    lines = [f'stream_bench_service{{name="{name}",version="{version}"}} {int(is_running)}']
    limits = Path(f"/proc/{pid}/limits")
    if is_running and limits.exists():
        files = next(line.split()[3] for line in limits.read_text().splitlines() if line.startswith("Max open files"))
        lines.append(f'stream_bench_files{{name="{name}"}} {files}')
        lines.append(f'stream_bench_files_wanted{{name="{name}"}} {record["nofile"]}')
    return lines


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
