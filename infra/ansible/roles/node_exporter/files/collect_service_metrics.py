"""Collector of metrics about the services of stream-bench on this host, their limits, their JVMs and the clock.

It writes them for the textfile collector of the Prometheus node exporter.
"""

import json
import os
import re
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SERVICES = Path("/etc/stream-bench/services")
"""Folder with one JSON file for each installed service, written by the role `service`."""
COUNTERS_MAGIC, MAX_COUNTERS_BYTES = b"\xca\xfe\xc0\xc0", 2**20
PROLOGUE, ENTRY, LONG = struct.Struct("<4sBBBBiiqii"), struct.Struct("<iiiBBBBi"), ord("J")
"""Layout of the counters that a JVM keeps in a file for jstat (hsperfdata 2, little-endian)."""


def main() -> None:
    """Write stream-bench.prom atomically into the folder that the command line names."""
    records = [json.loads(path.read_text()) for path in sorted(SERVICES.glob("*.json"))]
    lines = [line for record in records for line in service_metrics(record)]
    target = Path(sys.argv[1]) / "stream-bench.prom"
    part = target.with_suffix(".part")
    lines += [*clock_metrics(), f"stream_bench_collected_seconds {time.time():.3f}"]
    part.write_text("".join(f"{line}\n" for line in lines))
    part.chmod(0o644)
    part.rename(target)


def service_metrics(record: dict[str, str]) -> list[str]:
    """Return the metrics of one service: whether it runs, its version, its limit of open files, its JVMs' pauses."""
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
    for jvm in pids_of(f"{name}.service"):
        paused = gc_seconds(jvm)
        if paused is not None:
            lines.append(f'stream_bench_gc_seconds_total{{name="{name}",pid="{jvm}"}} {paused:.4f}')
    return lines


def pids_of(unit: str) -> list[int]:
    """Return the processes in the control group of a unit, such as the executors that a worker has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            groups = path.read_text().splitlines()
        except OSError:  # it has ended
            continue
        if any(unit in group.split("/") for group in groups):
            found.append(int(path.parent.name))
    return found


def gc_seconds(pid: int) -> float | None:
    """Return the seconds that a JVM has paused its program for its collectors so far; None if it is not a JVM."""
    try:
        files = list(Path(f"/proc/{pid}/root/tmp").glob(f"hsperfdata_*/{pid}"))
        counters = dict(read_counters(read_file_of(pid, files[0]))) if files else {}
    except (OSError, struct.error, ValueError):  # it has ended, or the file is another one
        return None
    if not counters.get("sun.os.hrt.frequency"):
        return None
    ticks = sum(value for name, value in counters.items() if re.fullmatch(r"sun\.gc\.collector\..*\.time", name))
    return ticks / counters["sun.os.hrt.frequency"]


def read_file_of(pid: int, path: Path) -> bytes:
    """Return a small regular file of the account of a process; ValueError for any other: this program is root."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found, owner = os.fstat(opened), Path(f"/proc/{pid}").stat().st_uid
        if not stat.S_ISREG(found.st_mode) or found.st_uid != owner or found.st_size > MAX_COUNTERS_BYTES:
            raise ValueError(path)
        return os.read(opened, MAX_COUNTERS_BYTES)
    finally:
        os.close(opened)


def read_counters(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield the name and value of each integer counter of a JVM."""
    magic, little, major, _, _, _, _, _, position, count = PROLOGUE.unpack_from(content)
    if (magic, little, major) != (COUNTERS_MAGIC, 1, 2):
        return
    for _ in range(count):
        length, name_at, vector, kind, _, _, _, data_at = ENTRY.unpack_from(content, position)
        if length < ENTRY.size:
            raise ValueError("this is no file of a JVM")
        if kind == LONG and vector == 0:
            end = content.index(b"\0", position + name_at)
            yield (
                content[position + name_at : end].decode("ascii"),
                struct.unpack_from("<q", content, position + data_at)[0],
            )
        position += length


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
