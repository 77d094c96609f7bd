"""One child process with its whole session: queried, waited for and stopped (Linux).

Only bench.system.supervisor makes them. A child is reaped last: until then no other process can get its pid, so that
signals to its session are safe.
"""

import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from bench.errors import NotReadyError, ProcessDiedError, ServiceError
from bench.system.ipc import Failure, Inbox
from bench.system.procfs import members_of

ReplyT = TypeVar("ReplyT")
ErrorT = TypeVar("ErrorT", bound=ServiceError)

Role = Literal["load", "source", "framework"]
"""The part of a deployment that a child's resource usage is attributed to."""

_POLL_INTERVAL_S = 0.02
"""Between two checks of a child that is being stopped."""
_READY_INTERVAL_S = 0.05
"""Between two checks of a child that is being waited for."""
_DESCENDANTS_TIMEOUT_S = 1.0
"""For the descendants of a child that has ended, before they are signalled."""
_KILL_TIMEOUT_S = 10.0
"""For a process to end after SIGKILL, before the harness gives up."""
_LOG_TAIL_LINES, _LOG_TAIL_BYTES = 10, 8192
_DISK_FULL = os.strerror(errno.ENOSPC)


class Child:
    """A process that a Supervisor started, with all its descendants in its session."""

    def __init__(  # noqa: PLR0913  a child has these properties; all but the process by keyword
        self,
        popen: subprocess.Popen[bytes],
        *,
        name: str,
        role: Role,
        log: Path,
        on_reaped: "Callable[[Child], None]",
        inbox: Inbox[Any] | None = None,
    ) -> None:
        self.name, self.role, self.pid, self.log = name, role, popen.pid, log
        self._popen, self._on_reaped, self._inbox = popen, on_reaped, inbox
        self._exit_code: int | None = None
        self._reaped, self._reaping = False, threading.RLock()

    @property
    def inbox(self) -> Inbox[Any]:
        """The harness's end of the channel; only for a child that was started with `received`."""
        assert self._inbox is not None, f"{self.name} was started without a channel"
        return self._inbox

    @property
    def exit_code(self) -> int | None:
        """The exit code, or minus the number of the signal that ended it; None while it runs."""
        with self._reaping:
            if self._exit_code is None and not self._reaped:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # checks, does not reap
                if ended is not None:
                    self._exit_code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            return self._exit_code

    def alive(self) -> bool:
        """Return True while the process runs."""
        return self.exit_code is None and not self._reaped

    def members(self) -> list[int]:
        """Return the pids of the session's running processes, whatever process group they are in."""
        return [] if self._reaped else [stat.pid for stat in members_of(self.pid)]

    def exit_error(self, what: str = "") -> ProcessDiedError:
        """Return the error to raise for a child that ended, or for `what` of it did: with the last lines of its log."""
        return self._error(ProcessDiedError, what or f"{self.name} ended with exit code {self.exit_code}")

    def receive(self, timeout: float = 0) -> list[Any]:
        """Return the messages since the last call, waiting at most `timeout` seconds for the first.

        Raises:
            ProcessDiedError: One of the messages is a Failure.
        """
        messages = list(self.inbox.receive(timeout))
        for message in messages:
            if isinstance(message, Failure):
                raise ProcessDiedError(f"{self.name} ended: {message.reason}", self.log)
        return messages

    def wait_reply(self, kind: type[ReplyT], seconds: float) -> ReplyT:
        """Return the first message of a type; skip others.

        Raises:
            ProcessDiedError: The child sent a Failure or ended.
            NotReadyError: No such message came within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = self.alive()  # checked first, so that the last messages of an ended child are still received
            for message in self.receive(_READY_INTERVAL_S):
                if isinstance(message, kind):
                    return message
            if not alive:
                raise self.exit_error()
        raise self._error(NotReadyError, f"{self.name} did not answer within {seconds:g} s")

    def wait_ready(self, probe: Callable[[], bool], seconds: float) -> None:
        """Wait until the probe returns True.

        Raises:
            ProcessDiedError: The child ended before.
            NotReadyError: The probe returned False for `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not probe():
            if not self.alive():
                raise self.exit_error()
            if time.monotonic() >= deadline:
                raise self._error(NotReadyError, f"{self.name} was not ready within {seconds:g} s")
            time.sleep(_READY_INTERVAL_S)

    def wait_end(self, seconds: float) -> int:
        """Wait for a child that ends by itself and return its exit code.

        Raises:
            NotReadyError: It still runs after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while (code := self.exit_code) is None:
            if time.monotonic() >= deadline:
                raise self._error(NotReadyError, f"{self.name} did not end within {seconds:g} s")
            time.sleep(_POLL_INTERVAL_S)
        return code

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the child and its whole session: politely, then by SIGTERM, each within `timeout_s`, then by SIGKILL.

        The polite way is to close the sending side of the channel, or SIGINT for a child without one. Idempotent.
        """
        if self._reaped:
            return
        if self._inbox is None:
            self._signal(signal.SIGINT)
        else:
            self._inbox.close_sending()
        if not self._ended_within(timeout_s):
            self._signal(signal.SIGTERM)
            self._ended_within(timeout_s)
        self.kill()

    def kill(self) -> None:
        """Kill the rest of the session at once and reap the child. Idempotent.

        Raises:
            ServiceError: A process survived SIGKILL for ten seconds.
        """
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while not self._reaped and self.members():
            if time.monotonic() >= deadline:
                raise ServiceError(f"{self.name} (pid {self.pid}) does not end although it was killed", self.log)
            self._signal(signal.SIGKILL)
            time.sleep(_POLL_INTERVAL_S / 4)
        self._reap()

    def _error(self, kind: type[ErrorT], what: str) -> ErrorT:
        """Return an error with the last lines of the log; it says so if a full disk was the reason."""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - _LOG_TAIL_BYTES))
            tail = file.read().decode(errors="replace")
        reason = f": {_DISK_FULL}" if _DISK_FULL in tail else ""
        return kind(what + reason, self.log, tail.splitlines()[-_LOG_TAIL_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.members():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def _ended_within(self, timeout_s: float) -> bool:
        """Return True if the child ended in time, and its descendants with it or soon after it."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL_S)
        deadline = time.monotonic() + min(timeout_s, _DESCENDANTS_TIMEOUT_S)
        while self.members():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL_S)
        return True

    def _reap(self) -> None:
        with self._reaping:
            if self._reaped:
                return
            self._exit_code, self._reaped = self._popen.wait(timeout=_KILL_TIMEOUT_S), True
        if self._inbox is not None:
            self._inbox.close()
        self._on_reaped(self)
