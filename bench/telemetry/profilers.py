"""Flame graphs of the busy processes of a deployment: py-spy for those that run Python, async-profiler for JVMs."""

import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from bench.errors import HarnessError, ServiceError, UsageError
from bench.system import procfs
from bench.system.child import Child
from bench.system.supervisor import Supervisor
from bench.telemetry.jvm_attach import load_agent

SAMPLES_HZ = 100
MIN_CPU_SHARE = 0.02
"""Share of a core from which on a process is profiled."""
MAX_PROCESSES = 8
"""That are profiled at once, the busiest ones."""
MARGIN_S = 30.0
_POLL_INTERVAL_S = 0.05
MISSING = 'a profile needs py-spy; run: pip install "stream-bench[profile]"'
REFUSED = (
    "the kernel does not allow to read other processes (ptrace): run as root, or set kernel.yama.ptrace_scope to 0;"
    " in a container, add the capability SYS_PTRACE"
)
_REFUSALS = ("ermission denied", "not permitted")
"""In what py-spy prints."""

Runtime = Literal["python", "java", "other"]


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


def require_py_spy(python: str = sys.executable, search: str | None = None) -> Path:
    """Return the executable of py-spy.

    Args:
        python: executable of an environment that may have it.
        search: other folders as in PATH, which is the default.

    Raises:
        UsageError: it is nowhere.
    """
    own = Path(python).with_name("py-spy")
    found = str(own) if own.exists() else shutil.which("py-spy", path=search)
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
            BusyProcess(f"{name}-{pid}", pid, runtime_of(pid), (used - self._before.get((name, pid), 0.0)) / seconds)
            for (name, pid), used in now.items()
        ]
        return sorted((one for one in found if one.cpu_share >= MIN_CPU_SHARE), key=lambda one: -one.cpu_share)


class Profilers:
    """Profilers that record side by side.

    Args:
        supervisor: starts those that are processes of their own.
        folder: for the flame graphs; it exists.
        py_spy: its executable.
        agent: the library of async-profiler; without it JVMs are left out.
        margin_s: for a profiler to write its flame graph, after its time is over.
    """

    def __init__(
        self, supervisor: Supervisor, folder: Path, py_spy: Path, agent: Path | None = None, *,
        margin_s: float = MARGIN_S,
    ) -> None:  # fmt: skip
        self._supervisor, self._folder, self._py_spy, self._agent = supervisor, folder, py_spy, agent
        self._margin_s = margin_s
        self._running: list[tuple[BusyProcess, _Recording]] = []
        self._deadline = 0.0

    def start(self, processes: Iterable[BusyProcess], seconds: float) -> None:
        """Record processes for so many seconds; return at once. At most MAX_PROCESSES are recorded."""
        self._deadline = time.monotonic() + seconds + self._margin_s
        runtimes = ("python",) if self._agent is None else ("python", "java")
        for process in [one for one in processes if one.runtime in runtimes][:MAX_PROCESSES]:
            self._running.append((process, self._record(process, max(1, round(seconds)))))

    def finish(self) -> list[FlameGraph]:
        """Wait until all have ended, and return their flame graphs; one that takes too long is stopped."""
        graphs = []
        while self._running:
            process, recording = self._running.pop(0)
            while not recording.ended() and time.monotonic() < self._deadline:
                time.sleep(_POLL_INTERVAL_S)
            graphs.append(FlameGraph(process, *recording.outcome()))
        return graphs

    def _record(self, process: BusyProcess, seconds: int) -> "_Recording":
        java = process.runtime == "java"
        path = self._folder / f"{process.name}{'.html' if java else '.svg'}"
        path.unlink(missing_ok=True)  # of an earlier process with this pid
        if java and self._agent is not None:
            return _JvmRecording(process.pid, self._agent, path, seconds)
        command = [
            str(self._py_spy), "record", "--pid", str(process.pid), "--duration", str(seconds),
            "--rate", str(SAMPLES_HZ), "--format", "flamegraph", "--output", str(path),
        ]  # fmt: skip
        return _PySpyRecording(self._supervisor.start(command, name=f"py-spy-{process.pid}", role="load"), path)


class _Recording(Protocol):
    """A profiler under way."""

    def ended(self) -> bool: ...

    def outcome(self) -> tuple[Path | None, str]: ...


class _PySpyRecording:
    """A process that writes an SVG when its time is over."""

    def __init__(self, child: Child, path: Path) -> None:
        self._child, self._path = child, path

    def ended(self) -> bool:
        return not self._child.alive()

    def outcome(self) -> tuple[Path | None, str]:
        """Return the file, or why there is none; stop a process that still runs."""
        child = self._child
        if child.alive():
            child.stop()
            return None, f"{child.name} did not end in time; its log: {child.log}"
        if child.exit_code == 0 and self._path.exists():
            return self._path, ""
        said = child.log.read_text(encoding="utf-8", errors="replace") if child.log.exists() else ""
        if any(each in said for each in _REFUSALS):
            return None, REFUSED
        last = (said.strip().splitlines() or ["it said nothing"])[-1]
        return None, f"{child.name} ended with exit code {child.exit_code}: {last}"


class _JvmRecording:
    """An agent in a JVM that stops by itself, and then writes a page."""

    def __init__(self, pid: int, agent: Path, path: Path, seconds: int) -> None:
        self._pid, self._path, self._problem = pid, path, ""
        options = f"start,event=cpu,interval={1000 // SAMPLES_HZ}ms,timeout={seconds},file={path.absolute()}"
        try:
            load_agent(pid, agent, options)
        except ServiceError as problem:
            self._problem = str(problem)

    def ended(self) -> bool:
        return bool(self._problem) or self._is_written()

    def outcome(self) -> tuple[Path | None, str]:
        """Return the file, or why there is none."""
        if self._is_written():
            return self._path, ""
        return None, self._problem or f"async-profiler wrote nothing in the JVM {self._pid}"

    def _is_written(self) -> bool:
        try:
            return self._path.read_text(encoding="utf-8").rstrip().endswith("</html>")
        except OSError:
            return False


def _cpu_seconds(children: Iterable[Child]) -> dict[tuple[str, int], float]:
    return {(child.name, stat.pid): stat.own_seconds for child in children for stat in procfs.members_of(child.pid)}


def runtime_of(pid: int) -> Runtime:
    """Return what a process runs, by its executable."""
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name
    except OSError:  # it has ended
        return "other"
    return "python" if program.startswith("python") else "java" if program == "java" else "other"


def require_one(graphs: Iterable[FlameGraph]) -> None:
    """Raise HarnessError with the first reason where there is no flame graph at all."""
    found = list(graphs)
    if not any(graph.path is not None for graph in found):
        raise HarnessError(found[0].problem if found else "no process of the cell that runs Python or a JVM was busy")
