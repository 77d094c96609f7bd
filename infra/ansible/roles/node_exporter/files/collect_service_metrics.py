"""Looks at the services of stream-bench on this host, at their limits and at the clock, and writes it down for the exporter."""

import json
import subprocess
import sys
from pathlib import Path

SERVICES = Path("/etc/stream-bench/services")


def main() -> None:
    """Write stream-bench.prom into the folder that the command line names, all at once."""
    lines = [line for path in sorted(SERVICES.glob("*.json")) for line in service(json.loads(path.read_text()))]
    target = Path(sys.argv[1]) / "stream-bench.prom"
    part = target.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in [*lines, *clock()]))
    part.chmod(0o644)
    part.rename(target)


def service(noted: dict[str, str]) -> list[str]:
    """Whether it runs, in which version, and how many files it may have open."""
    name, version = noted["name"], noted["version"]
    pid = said(["systemctl", "show", "--property=MainPID", "--value", f"{name}.service"]).strip()
    runs = pid not in ("", "0")
    lines = [f'stream_bench_service{{name="{name}",version="{version}"}} {int(runs)}']
    limits = Path(f"/proc/{pid}/limits")
    if runs and limits.exists():
        files = next(line.split()[3] for line in limits.read_text().splitlines() if line.startswith("Max open files"))
        lines.append(f'stream_bench_files{{name="{name}"}} {files}')
        lines.append(f'stream_bench_files_wanted{{name="{name}"}} {noted["nofile"]}')
    return lines


def clock() -> list[str]:
    """How far chrony says that the clock is off, and how wrong that may be; nothing when it follows no server."""
    fields = said(["chronyc", "-c", "tracking"]).strip().split(",")
    if len(fields) < 12 or fields[2] == "0":
        return ["stream_bench_clock_followed 0"]
    bound = float(fields[11]) + float(fields[10]) / 2
    return [
        "stream_bench_clock_followed 1",
        f"stream_bench_clock_offset_seconds {fields[4]}",
        f"stream_bench_clock_bound_seconds {bound:g}",
    ]


def said(command: list[str]) -> str:
    """What a command says; nothing when it is not there or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


if __name__ == "__main__":
    main()
