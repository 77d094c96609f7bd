"""One child process and its whole session: asked, waited for, stopped; only bench.system.supervisor makes them (Linux).

It is reaped last: until then nobody else can get its number, so that signals to its session are safe.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, cast

from bench.errors import NotReadyError, ProcessDiedError, ServiceError
from bench.system.ipc import Failure, Inbox
from bench.system.procfs import members_of

Said = TypeVar("Said")

Role = Literal["load", "source", "framework"]
"""On whose account the CPU time of a child goes."""

_TICK = 0.02
"""Seconds between two looks at a child that is being stopped."""
_STRAGGLERS = 1.0
"""Seconds that the descendants of a child have after it has ended."""
_UNKILLABLE = 10.0
"""Seconds after which a killed process that is still there is given up."""


class Child:
    """A process that a Supervisor started, with all its descendants in its session."""

    def __init__(
        self, popen: subprocess.Popen[bytes], name: str, role: Role, log: Path, forget: "Callable[[Child], None]"
    ) -> None:
        self.name, self.role, self.pid, self.log = name, role, popen.pid, log
        self._popen, self._forget = popen, forget
        self._socket: socket.socket | None = None
        self._inbox: Inbox[Any] | None = None
        self._exit_code: int | None = None
        self._reaped = False

    def connect(self, end: socket.socket, received: type | UnionType | None) -> None:
        """Listen at this end of its channel; the Supervisor does it once."""
        self._socket, self._inbox = end, Inbox(end, cast("type[Any]", received))

    @property
    def inbox(self) -> Inbox[Any]:
        """What it says and is told; only for a child that was started with `heard`."""
        assert self._inbox is not None, f"{self.name} was started without a channel"
        return self._inbox

    @property
    def exit_code(self) -> int | None:
        """As a shell's, but minus the signal's number when a signal ended it; None while it runs."""
        if self._exit_code is None and not self._reaped:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # looks, does not reap
            if ended is not None:
                self._exit_code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return self._exit_code

    def alive(self) -> bool:
        return self.exit_code is None and not self._reaped

    def members(self) -> list[int]:
        """The pids of its session's running processes, whatever process group they are in."""
        return [] if self._reaped else [stat.pid for stat in members_of(self.pid)]

    def died(self) -> ProcessDiedError:
        """An error to raise: that it has ended, how, and the last lines of its log."""
        return ProcessDiedError(f"{self.name} ended with exit code {self.exit_code}", self.log, _last_lines(self.log))

    def received(self, timeout: float = 0) -> list[Any]:
        """What it has said since the last call, waiting `timeout` seconds for the first; raises Died where it tells of trouble."""
        received = list(self.inbox.received(timeout))
        for one in received:
            if isinstance(one, Failure):
                raise ProcessDiedError(f"{self.name} ended: {one.reason}", self.log)
        return received

    def answer(self, kind: type[Said], seconds: float) -> Said:
        """The first thing of a kind that it says; raises Died when it tells of trouble or ends, NotReady after the seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = self.alive()  # first: what it said last is still heard
            for one in self.received(0.05):
                if isinstance(one, kind):
                    return one
            if not alive:
                raise self.died()
        raise NotReadyError(f"{self.name} did not answer within {seconds:g} s", self.log, _last_lines(self.log))

    def wait_ready(self, probe: Callable[[], bool], seconds: float) -> None:
        """Return once the probe says yes; raises Died when the child ends before, NotReady when the seconds are over."""
        deadline = time.monotonic() + seconds
        while not probe():
            if not self.alive():
                raise self.died()
            if time.monotonic() >= deadline:
                raise NotReadyError(f"{self.name} was not ready within {seconds:g} s", self.log, _last_lines(self.log))
            time.sleep(0.05)

    def wait_end(self, seconds: float) -> int:
        """The exit code of a child that is to end by itself; raises NotReady when it has not ended after these seconds."""
        deadline = time.monotonic() + seconds
        while (code := self.exit_code) is None:
            if time.monotonic() >= deadline:
                raise NotReadyError(f"{self.name} did not end within {seconds:g} s", self.log, _last_lines(self.log))
            time.sleep(_TICK)
        return code

    def stop(self, patience: float = 5.0) -> None:
        """End it and its whole session: politely, then by SIGTERM, each for at most `patience` seconds, then by SIGKILL.

        Polite is the end of its channel, or SIGINT where it has none. Idempotent.
        """
        if self._reaped:
            return
        if self._socket is None:
            self._signal(signal.SIGINT)
        else:
            _shut(self._socket, socket.SHUT_WR)  # what it says last is still heard
        if not self._ended_within(patience):
            self._signal(signal.SIGTERM)
            self._ended_within(patience)
        self.kill()

    def kill(self) -> None:
        """End what is left of its session at once and reap it. Idempotent."""
        deadline = time.monotonic() + _UNKILLABLE
        while not self._reaped and self.members():
            if time.monotonic() >= deadline:
                raise ServiceError(f"{self.name} (pid {self.pid}) does not end although it was killed", self.log)
            self._signal(signal.SIGKILL)
            time.sleep(_TICK / 4)
        self._reap()

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.members():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def _ended_within(self, patience: float) -> bool:
        """Whether the child ended in time, and its descendants with it or soon after it."""
        deadline = time.monotonic() + patience
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_TICK)
        deadline = time.monotonic() + min(patience, _STRAGGLERS)
        while self.members():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_TICK)
        return True

    def _reap(self) -> None:
        if self._reaped:
            return
        self._exit_code, self._reaped = self._popen.wait(timeout=_UNKILLABLE), True
        if self._socket is not None and self._inbox is not None:
            _shut(self._socket, socket.SHUT_RDWR)  # wakes the inbox's reader, which a close alone does not
            self._inbox.close()
        self._forget(self)


def _last_lines(log: Path, count: int = 10) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        return file.read().decode(errors="replace").splitlines()[-count:]


def _shut(end: socket.socket, how: int) -> None:
    try:
        end.shutdown(how)
    except OSError:
        return
