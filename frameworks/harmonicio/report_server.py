"""The server for reports of PEs.

A port, on loopback unless the site file says more, that accepts only who knows the secret.
"""

import contextlib
import socket
import threading
from secrets import compare_digest, token_hex
from typing import Any

from bench.errors import SiteError
from bench.services.ports import LOOPBACK
from bench.system.ipc import Inbox, Ready
from bench.workload.delivery_counts import ProcessingReport
from frameworks.harmonicio.job import Hello

_TIMEOUT_S = 10.0


class ReportServer:
    """A server for the reports of PEs. Raises SiteError where it cannot listen."""

    def __init__(self, host: str = LOOPBACK, port: int = 0) -> None:
        self.secret, self.host = token_hex(16), host
        try:
            self._listener = socket.create_server((host, port), backlog=64)
        except OSError as problem:
            raise SiteError(f"site.harmonicio.listen: cannot listen at {host}:{port}: {problem.strerror}") from problem
        self._inboxes: list[Inbox[Any]] = []
        self._ready: set[int] = set()
        threading.Thread(target=self._accept, daemon=True, name="reports").start()

    @property
    def port(self) -> int:
        """Return where it listens."""
        return int(self._listener.getsockname()[1])

    def ready(self) -> int:
        """Return how many PEs are connected."""
        self.received()
        return len(self._ready)

    def ended(self) -> bool:
        """Return whether one of them has ended."""
        return any(inbox.ended for index, inbox in enumerate(self._inboxes) if index in self._ready)

    def received(self) -> list[ProcessingReport]:
        """Return what was reported since the last call; a peer that did not say the secret first is ignored."""
        reports: list[ProcessingReport] = []
        for index, inbox in enumerate(list(self._inboxes)):
            for one in inbox.receive():
                if isinstance(one, Hello) and compare_digest(one.secret, self.secret):
                    self._ready.add(index)
                elif isinstance(one, ProcessingReport) and index in self._ready:
                    reports.append(one)
        return reports

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or who waits in `accept` keeps the port
        self._listener.close()
        for inbox in self._inboxes:
            inbox.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._inboxes.append(Inbox(sock, Hello | ProcessingReport | Ready))  # type: ignore[arg-type]  # a union of tagged structs
