"""A runtime whose PEs are processes: the image is "python:module:function".

A CPU share is a weight as in Docker, 1024 x share against 1024; the nice value with that weight stands for it.
"""

import json
import logging
import math
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex

import psutil

from frameworks.harmonicio.engine.errors import RefusedError, UnreachableError
from frameworks.harmonicio.engine.worker.runtime import MAX_PROCESSES, Container, PeSpec

logger = logging.getLogger(__name__)

SCHEME = "python:"
_TOKENS = "HARMONICIO_TOKEN_"
"""Variables that a PE gets of its own role only."""
_NICE_STEP, _MAX_NICE = 1.25, 19
"""Ratio of the weights of two neighbouring nice values (Linux, sched_prio_to_weight), and the largest value."""
_STOP_TIMEOUT_S = 30.0
"""Time that a PE has for draining."""


class _PeProcess:
    """A process that was started."""

    def __init__(self, spec: PeSpec, process: "subprocess.Popen[bytes]") -> None:
        self.spec, self.process = spec, process
        self.stop_by = math.inf
        self.cpu_seconds = 0.0


class ProcessRuntime:
    """Starts PEs as child processes, each in a process group of its own within the worker's session.

    Args:
        logs: folder of their logs; None to write to the worker's standard error.
        user: of their processes; None for the worker's own.
    """

    def __init__(self, logs: Path | None, user: pwd.struct_passwd | None = None) -> None:
        self._logs, self._user = logs, user
        # calls come from several threads: iterate over a copy
        self._running: dict[str, _PeProcess] = {}

    def start(self, spec: PeSpec) -> str:
        """Start a PE and return its id of 12 characters; raises RefusedError or UnreachableError."""
        if not spec.image.startswith(SCHEME):
            raise RefusedError(f"the process runtime runs python:module:function, not {spec.image!r}")
        short_id = token_hex(6)
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(_TOKENS)}
        environment = {**inherited, **spec.environment, "HOSTNAME": short_id, "HARMONICIO_LIFELINE": "1"}
        environment["HDE_NODE_DATA_PORT"] = str(spec.port)
        environment["HARMONICIO_FUNCTION"] = spec.image.removeprefix(SCHEME)
        environment["HARMONICIO_SETTINGS"] = json.dumps(spec.settings)
        if spec.memory_bytes is not None:
            environment["HARMONICIO_MEMORY_BYTES"] = str(spec.memory_bytes)
        if spec.cpu_share is not None:
            environment["HARMONICIO_NICE"] = str(_nice_value(spec.cpu_share))
        try:
            log = self._open_log(short_id)
            process = self._popen(environment, log)
        except OSError as error:
            raise UnreachableError(f"the process of a PE could not be started: {error}") from None
        finally:
            if self._logs is not None:
                os.close(log)
        self._running[short_id] = _PeProcess(spec, process)
        return short_id

    def _popen(self, environment: dict[str, str], log: int) -> "subprocess.Popen[bytes]":
        """Start the process of a PE, as its user."""
        command, user = [sys.executable, "-m", "frameworks.harmonicio.engine.pe.main"], self._user
        if user is not None:
            own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
            environment = {**environment, **own, "HARMONICIO_PROCESSES": str(MAX_PROCESSES)}
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, process_group=0, bufsize=0,
            user=user and user.pw_uid, group=user and user.pw_gid, extra_groups=None if user is None else [],
        )  # fmt: skip

    def stop(self, short_id: str) -> None:
        """Let a PE drain and end; raises RefusedError when there is none of that id."""
        running = self._running.get(short_id)
        if running is None:
            raise RefusedError(f"there is no PE {short_id} here")
        running.stop_by = min(running.stop_by, time.monotonic() + _STOP_TIMEOUT_S)
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGTERM)

    def containers(self) -> list[Container]:
        """Return all PEs; those that did not end within their time are killed."""
        now = time.monotonic()
        for running in list(self._running.values()):
            if now > running.stop_by and running.process.poll() is None:
                _kill(running)
        return [self._container(short_id, running) for short_id, running in list(self._running.items())]

    def any_ended(self) -> bool:
        """Return whether a PE has ended."""
        return any(running.process.poll() is not None for running in list(self._running.values()))

    def remove_ended(self) -> list[Container]:
        """Remove the PEs that have ended, and return them."""
        ended = [container for container in self.containers() if container.status != "running"]
        for container in ended:
            running = self._running.pop(container.short_id)
            if running.process.stdin is not None:
                running.process.stdin.close()
        return ended

    def close(self, timeout_s: float) -> None:
        """End all PEs: let them drain, and kill them after the timeout."""
        for running in list(self._running.values()):
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        for running in list(self._running.values()):
            try:
                running.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _kill(running)
        self.remove_ended()

    def _container(self, short_id: str, running: _PeProcess) -> Container:
        code = running.process.poll()
        if code is None:
            running.cpu_seconds = _cpu_seconds(running.process.pid, running.cpu_seconds)
        return Container(
            short_id=short_id, image=running.spec.image, c_name=running.spec.c_name, port=running.spec.port,
            status="running" if code is None else f"exited ({code})", cpu_share=running.spec.cpu_share,
            cpu_seconds=running.cpu_seconds,
        )  # fmt: skip

    def _open_log(self, short_id: str) -> int:
        if self._logs is None:
            return 2  # the worker's standard error
        self._logs.mkdir(parents=True, exist_ok=True)
        return os.open(self._logs / f"pe-{short_id}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _kill(running: _PeProcess) -> None:
    logger.warning("a PE of %s did not end in time: killed", running.spec.c_name)
    try:
        os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait(5)
    except (ProcessLookupError, subprocess.TimeoutExpired) as error:
        logger.warning("it could not be killed: %s", error)


def _nice_value(share: float) -> int:
    """Return the nice value whose weight is that share of the default weight."""
    return max(0, min(_MAX_NICE, round(math.log(1 / max(share, 1e-3)) / math.log(_NICE_STEP))))


def _cpu_seconds(pid: int, before: float) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return before
    return float(times.user + times.system)
