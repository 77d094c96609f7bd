"""Flame graphs of the processes of a deployment that are busy: py-spy for those that run Python."""

import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from bench.errors import HarnessError, UsageError
from bench.system import procfs
from bench.system.child import Child
from bench.system.supervisor import Supervisor

SAMPLES_HZ = 100
MIN_CPU_SHARE = 0.02
"""Share of a core from which on a process is profiled."""
MAX_PROCESSES = 8
"""That are profiled at once, the busiest ones."""
MARGIN_S = 30.0
"""For a profiler to write its flame graph, after its time is over."""
_POLL_INTERVAL_S = 0.05
MISSING = 'a profile needs py-spy; run: pip install "stream-bench[profile]"'
REFUSED = (
    "the kernel does not allow to read other processes (ptrace): run as root, or set kernel.yama.ptrace_scope to 0;"
    " in a container, add the capability SYS_PTRACE"
)
_REFUSALS = ("ermission denied", "not permitted")
"""In what py-spy prints."""

Runtime = Literal["python", "other"]


class BusyProcess(Struct, frozen=True):
    """A process that uses CPU time."""

    name: str
    """of the child that started it, and its pid"""
    pid: int
    runtime: Runtime
    cpu_share: float
    """cores that it uses"""


class FlameGraph(Struct, frozen=True):
    """The flame graph of a process, or why there is none."""

    process: BusyProcess
    path: Path | None
    problem: str = ""


def require_py_spy() -> Path:
    """Return the executable of py-spy, of this Python's environment or of the PATH; UsageError without one."""
    own = Path(sys.executable).with_name("py-spy")
    found = str(own) if own.exists() else shutil.which("py-spy")
    if found is None:
        raise UsageError(MISSING)
    return Path(found)


class CpuUse:
    """The CPU time that the processes of children have used since a moment."""

    def __init__(self, children: Iterable[Child]) -> None:
        self._began, self._before = time.monotonic(), _cpu_seconds(children)

    def busy(self, children: Iterable[Child]) -> list[BusyProcess]:
        """Return the processes that have used MIN_CPU_SHARE of a core at least, the busiest first."""
        seconds, now = max(1e-9, time.monotonic() - self._began), _cpu_seconds(children)
        found = [
            BusyProcess(f"{name}-{pid}", pid, _runtime_of(pid), (used - self._before.get((name, pid), 0.0)) / seconds)
            for (name, pid), used in now.items()
        ]
        return sorted((one for one in found if one.cpu_share >= MIN_CPU_SHARE), key=lambda one: -one.cpu_share)


class Profilers:
    """Profilers that record side by side, each a child process.

    Args:
        supervisor: starts them.
        folder: for the flame graphs; it exists.
    """

    def __init__(self, supervisor: Supervisor, folder: Path) -> None:
        self._supervisor, self._folder, self._py_spy = supervisor, folder, require_py_spy()
        self._running: list[tuple[BusyProcess, Child, Path]] = []
        self._deadline = 0.0

    def start(self, processes: Iterable[BusyProcess], seconds: float) -> None:
        """Record Python processes for so many seconds; return at once. At most MAX_PROCESSES are recorded."""
        self._deadline = time.monotonic() + seconds + MARGIN_S
        for process in [one for one in processes if one.runtime == "python"][:MAX_PROCESSES]:
            path = self._folder / f"{process.name}.svg"
            command = [
                str(self._py_spy), "record", "--pid", str(process.pid), "--duration", str(max(1, round(seconds))),
                "--rate", str(SAMPLES_HZ), "--format", "flamegraph", "--output", str(path),
            ]  # fmt: skip
            child = self._supervisor.start(command, name=f"py-spy-{process.pid}", role="load")
            self._running.append((process, child, path))

    def finish(self) -> list[FlameGraph]:
        """Wait until all have ended, and return their flame graphs; one that takes too long is stopped."""
        graphs = []
        while self._running:
            process, child, path = self._running.pop(0)
            while child.alive() and time.monotonic() < self._deadline:
                time.sleep(_POLL_INTERVAL_S)
            graphs.append(FlameGraph(process, *_outcome(child, path)))
            child.stop()
        return graphs


def _outcome(child: Child, path: Path) -> tuple[Path | None, str]:
    """Return the file of a profiler, or why there is none."""
    if child.alive():
        return None, f"{child.name} did not end within {MARGIN_S:g} s after its time; its log: {child.log}"
    if child.exit_code == 0 and path.exists():
        return path, ""
    said = child.log.read_text(encoding="utf-8", errors="replace") if child.log.exists() else ""
    if any(each in said for each in _REFUSALS):
        return None, REFUSED
    last = (said.strip().splitlines() or ["it said nothing"])[-1]
    return None, f"{child.name} ended with exit code {child.exit_code}: {last}"


def _cpu_seconds(children: Iterable[Child]) -> dict[tuple[str, int], float]:
    return {(child.name, stat.pid): stat.own_seconds for child in children for stat in procfs.members_of(child.pid)}


def _runtime_of(pid: int) -> Runtime:
    try:
        return "python" if Path(f"/proc/{pid}/exe").readlink().name.startswith("python") else "other"
    except OSError:  # it has ended
        return "other"


def require_one(graphs: Iterable[FlameGraph]) -> None:
    """Raise HarnessError with the first reason where there is no flame graph at all."""
    found = list(graphs)
    if not any(graph.path is not None for graph in found):
        raise HarnessError(found[0].problem if found else "no process of the framework that runs Python was busy")
