"""Child processes of the harness: started here and nowhere else, and none outlives it (Linux).

A child (bench.system.child) has a session of its own, a log, and, as long as it runs, a record (bench.system.orphans).
The reaper (bench.system.reaper) reads the records if the harness is killed.
"""

import logging
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType, UnionType
from typing import IO, Any, cast

from bench.errors import ServiceError
from bench.system.child import Child, Role
from bench.system.ipc import Inbox
from bench.system.orphans import MARKER_VARIABLE, Orphan
from bench.system.procfs import Stat, boot_id, stat_of

logger = logging.getLogger(__name__)

_REAPER_TIMEOUT_S = 15
_REAPER = "import sys; sys.path.append(sys.argv[1]); from bench.system.reaper import main; main()"


class Supervisor:
    """Starts children, and stops all of them, the last one first, when it is closed; then it starts none any more.

    Several threads may start and stop children at a time.

    Args:
        registry: Folder of the records, shared by all harnesses of a user.
        logs: Folder of this run's logs.
    """

    def __init__(self, registry: Path, logs: Path) -> None:
        self._registry, self._logs, self._name = registry.absolute(), logs, secrets.token_hex(8)
        self._children: list[Child] = []
        self.cores_of: Mapping[Role, Collection[int]] = {}
        """the cores that children of a role may use; all cores for a role that is missing"""
        self._reaper: subprocess.Popen[bytes] | None = None
        self._lock, self._closed = threading.RLock(), False

    def __enter__(self) -> "Supervisor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def children(self) -> "tuple[Child, ...]":
        """The running children, in the order of their start."""
        return tuple(child for child in self._children.copy() if child.alive())

    def start(  # noqa: PLR0913  a child has these properties; all but the command by keyword
        self,
        command: Sequence[str],
        *,
        name: str,
        role: Role,
        received: type | UnionType | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> "Child":
        """Start a child that runs `command`.

        Args:
            command: Program and arguments.
            name: Name in messages; the output goes to `<name>.log`, with a number if that exists.
            role: The part of a deployment that its resource usage is attributed to.
            received: Type of the messages that it may send. With it the child gets a channel: `--channel <number>` at
                the end of its command, `child.inbox` here.
            env: Variables added to the harness's environment.
            cwd: Working folder; the harness's if None.

        Raises:
            ServiceError: The command cannot be started, or the supervisor was closed.
        """
        with self._lock:
            if self._closed:
                raise ServiceError(f"{name} is not started: everything is being stopped")
            return self._start(command, name=name, role=role, received=received, env=env, cwd=cwd)

    def close(self) -> None:
        """Stop all children, the last started first; kill them at once if interrupted. Idempotent."""
        with self._lock:
            self._closed = True
        try:
            for child in reversed(self._children.copy()):
                child.stop()
        finally:
            for child in reversed(self._children.copy()):
                child.kill()
            self._stop_reaper()

    def _start(  # noqa: PLR0913  as `start`
        self,
        command: Sequence[str],
        *,
        name: str,
        role: Role,
        received: type | UnionType | None,
        env: Mapping[str, str] | None,
        cwd: Path | None,
    ) -> "Child":
        self._start_reaper()
        log, path = _new_log(self._logs, name)
        harness = _stat(os.getpid())
        record = Orphan(secrets.token_hex(16), self._name, name, str(path), boot_id(), harness.pid, harness.created)
        record.write(self._registry)  # before the start, so that a harness killed in between leaves no unknown child
        ours, theirs = socket.socketpair() if received is not None else (None, None)
        try:
            popen = _spawn(command, log, theirs, {**os.environ, **(env or {}), MARKER_VARIABLE: record.marker}, cwd)
        except OSError as error:
            record.remove(self._registry)
            _close(ours)
            raise ServiceError(f"{name} cannot be started: {error}") from error
        finally:
            _close(log, theirs)
        if role in self.cores_of:
            os.sched_setaffinity(popen.pid, self.cores_of[role])  # its threads and children inherit the mask
        inbox = Inbox(ours, cast("type[Any]", received)) if ours is not None else None
        child = Child(popen, name=name, role=role, log=path, on_reaped=self._forget(record), inbox=inbox)
        self._children.append(child)
        record._replace(session=popen.pid, created=_stat(popen.pid).created).write(self._registry)
        logger.debug("%s started: pid %d, log %s", name, popen.pid, path)
        return child

    def _forget(self, record: Orphan) -> "Callable[[Child], None]":
        def forget(child: Child) -> None:
            record.remove(self._registry)
            self._children.remove(child)
            logger.debug("%s stopped: exit code %s", child.name, child.exit_code)

        return forget

    def _start_reaper(self) -> None:
        if self._reaper is not None and self._reaper.poll() is None:
            return
        self._registry.mkdir(parents=True, exist_ok=True)
        root = Path(__file__).parents[2]
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _REAPER, str(root), str(self._registry), self._name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _stop_reaper(self) -> None:
        reaper, self._reaper = self._reaper, None
        if reaper is None or reaper.stdin is None:
            return
        reaper.stdin.close()
        try:
            reaper.wait(timeout=_REAPER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            logger.warning("the reaper still runs: pid %d", reaper.pid)


def run_tool(command: Sequence[str], *, timeout_s: float = 30, cwd: Path | None = None) -> str:
    """Run a short tool and return what it wrote to stdout and stderr, merged.

    Raises:
        ServiceError: The tool is not installed, failed, or did not end within `timeout_s`.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=-1, stderr=-2, cwd=cwd, timeout=timeout_s, check=True, text=True
        )
    except FileNotFoundError as error:
        raise ServiceError(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ServiceError(f"{' '.join(command)} did not end within {timeout_s:g} s") from error
    except subprocess.CalledProcessError as error:
        lines = str(error.output).splitlines()[-10:]
        raise ServiceError(f"{' '.join(command)} ended with exit code {error.returncode}", None, lines) from error
    return done.stdout


def _spawn(
    command: Sequence[str], log: IO[bytes], theirs: socket.socket | None, env: Mapping[str, str], cwd: Path | None
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own that inherits its end of the channel."""
    passed = [theirs.fileno()] if theirs is not None else []
    channel = [text for fileno in passed for text in ("--channel", str(fileno))]
    return subprocess.Popen(
        [*command, *channel],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env=env,
        start_new_session=True,
        pass_fds=passed,
    )


def _new_log(folder: Path, name: str) -> tuple[IO[bytes], Path]:
    """Create an empty log file, numbered if the name is taken."""
    folder.mkdir(parents=True, exist_ok=True)
    number, path = 1, folder / f"{name}.log"
    while True:
        try:
            return path.open("xb"), path
        except FileExistsError:
            number += 1
            path = folder / f"{name}-{number}.log"


def _stat(pid: int) -> Stat:
    stat = stat_of(pid)
    if stat is None:
        raise ServiceError(f"process {pid} is not in /proc; the harness needs Linux with /proc")
    return stat


def _close(*things: socket.socket | IO[bytes] | None) -> None:
    for thing in things:
        if thing is not None:
            thing.close()
