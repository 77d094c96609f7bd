"""PEs as processes: the image is "python:module:function"; works everywhere, needs nothing.

A CPU share is a weight, as Docker's is: 1024 x share against 1024, by the nice value that has that weight.
"""

import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex

import psutil

from frameworks.harmonicio.engine.errors import Refused, Unreachable
from frameworks.harmonicio.engine.worker.runtime import Container, Start

logger = logging.getLogger(__name__)

SCHEME = "python:"
_NICE_STEP, _NICEST = 1.25, 19
"""Weight of one step of niceness (Linux, sched_prio_to_weight)."""
_STOP_SECONDS = 30.0
"""That a PE has for draining."""


class _Running:
    """A process that was started."""

    def __init__(self, start: Start, process: "subprocess.Popen[bytes]") -> None:
        self.start, self.process = start, process
        self.stop_by = math.inf
        self.cpu_seconds = 0.0


class ProcessRuntime:
    """Starts PEs as children, in a process group each, within the worker's session."""

    def __init__(self, logs: Path | None) -> None:
        self._logs = logs
        # calls come from several threads: whoever goes through it goes through a copy
        self._running: dict[str, _Running] = {}

    def start(self, start: Start) -> str:
        if not start.image.startswith(SCHEME):
            raise Refused(f"the process runtime runs python:module:function, not {start.image!r}")
        short_id = token_hex(6)
        environment = {**os.environ, **start.environment, "HOSTNAME": short_id, "HARMONICIO_LIFELINE": "1"}
        environment["HDE_NODE_DATA_PORT"] = str(start.port)
        environment["HARMONICIO_FUNCTION"] = start.image.removeprefix(SCHEME)
        environment["HARMONICIO_SETTINGS"] = json.dumps(start.settings)
        if start.memory_bytes is not None:
            environment["HARMONICIO_MEMORY_BYTES"] = str(start.memory_bytes)
        if start.cpu_share is not None:
            environment["HARMONICIO_NICE"] = str(_nice_of(start.cpu_share))
        command = [sys.executable, "-m", "frameworks.harmonicio.engine.pe.main"]
        try:
            log = self._log(short_id)
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, process_group=0, bufsize=0
            )
        except OSError as problem:
            raise Unreachable(f"the process of a PE could not be started: {problem}") from None
        finally:
            if self._logs is not None:
                os.close(log)
        self._running[short_id] = _Running(start, process)
        return short_id

    def stop(self, short_id: str) -> None:
        running = self._running.get(short_id)
        if running is None:
            raise Refused(f"there is no PE {short_id} here")
        running.stop_by = min(running.stop_by, time.monotonic() + _STOP_SECONDS)
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGTERM)

    def containers(self) -> list[Container]:
        now = time.monotonic()
        for running in list(self._running.values()):
            if now > running.stop_by and running.process.poll() is None:
                _kill(running)
        return [self._container(short_id, running) for short_id, running in list(self._running.items())]

    def any_ended(self) -> bool:
        return any(running.process.poll() is not None for running in list(self._running.values()))

    def remove_ended(self) -> list[Container]:
        ended = [container for container in self.containers() if container.status != "running"]
        for container in ended:
            running = self._running.pop(container.short_id)
            if running.process.stdin is not None:
                running.process.stdin.close()
        return ended

    def close(self, patience: float) -> None:
        for running in list(self._running.values()):
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + patience
        for running in list(self._running.values()):
            try:
                running.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _kill(running)
        self.remove_ended()

    def _container(self, short_id: str, running: _Running) -> Container:
        code = running.process.poll()
        if code is None:
            running.cpu_seconds = _cpu_seconds(running.process.pid, running.cpu_seconds)
        return Container(
            short_id=short_id, image=running.start.image, c_name=running.start.c_name, port=running.start.port,
            status="running" if code is None else f"exited ({code})", cpu_share=running.start.cpu_share,
            cpu_seconds=running.cpu_seconds,
        )  # fmt: skip

    def _log(self, short_id: str) -> int:
        if self._logs is None:
            return 2  # with the worker's own
        self._logs.mkdir(parents=True, exist_ok=True)
        return os.open(self._logs / f"pe-{short_id}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _kill(running: _Running) -> None:
    logger.warning("a PE of %s did not end in time: killed", running.start.c_name)
    try:
        os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait(5)
    except (ProcessLookupError, subprocess.TimeoutExpired) as problem:
        logger.warning("it could not be killed: %s", problem)


def _nice_of(share: float) -> int:
    """The nice value whose weight is that share of the ordinary one."""
    return max(0, min(_NICEST, round(math.log(1 / max(share, 1e-3)) / math.log(_NICE_STEP))))


def _cpu_seconds(pid: int, before: float) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return before
    return float(times.user + times.system)
