"""The server for reports of workers that an engine starts: PEs of HarmonicIO, Python workers of Flink.

A port, on loopback unless the site file says more, that accepts only who knows the secret.
"""

import contextlib
import logging
import socket
import threading
from secrets import compare_digest, token_hex
from typing import Any

from msgspec.structs import replace

from bench.config.address import Address
from bench.errors import SiteError
from bench.services.ports import LOOPBACK, listen_at
from bench.system.ipc import Inbox, Ready
from bench.workload.delivery_counts import ProcessingReport
from frameworks.report_connection import ReportAddress, ReportHello

logger = logging.getLogger(__name__)


class ReportServer:
    """A server for the reports of workers. Raises SiteError, naming the section's key, where it cannot listen.

    Args:
        host: to listen at.
        port: likewise; 0 for a free one.
        key: of the site file, with which an error begins.
        restarts: whether the engine ends all workers before it starts others from an earlier position: reports then say
            how often it had done so.
    """

    def __init__(self, host: str = LOOPBACK, port: int = 0, *, key: str = "listen", restarts: bool = False) -> None:
        listen = Address(host, port)
        try:
            self._listener = listen_at(listen, backlog=64)
        except OSError as problem:
            raise SiteError(f"site.{key}: cannot listen at {listen}: {problem.strerror}") from problem
        self.address = ReportAddress(host, int(self._listener.getsockname()[1]), token_hex(16))
        self._restarts = restarts
        self._inboxes: list[Inbox[Any]] = []
        self._ready: dict[int, int] = {}  # the restarts before each worker
        self._refused: set[int] = set()
        threading.Thread(target=self._accept, daemon=True, name="reports").start()

    def ready(self) -> int:
        """Return how many workers are connected."""
        self.received()
        return len(self._ready)

    def ended(self) -> int:
        """Return how many of them have ended."""
        return sum(inbox.ended for index, inbox in enumerate(self._inboxes) if index in self._ready)

    def received(self) -> list[ProcessingReport]:
        """Return what was reported since the last call; a peer that does not say the secret first is refused."""
        reports: list[ProcessingReport] = []
        for index, inbox in enumerate(list(self._inboxes)):
            ended = inbox.ended  # first: what came before the end is still received
            for one in inbox.receive():
                if isinstance(one, ReportHello) and compare_digest(one.secret.encode(), self.address.secret.encode()):
                    self._ready[index] = self._count_restarts()
                elif index not in self._ready:
                    ended = True
                elif isinstance(one, ProcessingReport):
                    reports.append(replace(one, restart=self._ready[index]))
            if ended and index not in self._ready and index not in self._refused:
                self._refuse(index)
        return reports

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or who waits in `accept` keeps the port
        self._listener.close()
        for inbox in self._inboxes:
            inbox.close()

    def _count_restarts(self) -> int:
        """Return the restarts before a worker that connects now."""
        before = max(self._ready.values(), default=0)
        return before + 1 if self._restarts and self._ready and self.ended() == len(self._ready) else before

    def _refuse(self, index: int) -> None:
        self._refused.add(index)
        self._inboxes[index].close()
        logger.warning("a connection to the port for reports did not say the secret: it is closed")

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._inboxes.append(Inbox(sock, ReportHello | ProcessingReport | Ready))  # type: ignore[arg-type]  # a union of tagged structs
