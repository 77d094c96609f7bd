"""The server for reports of workers that an engine starts: PEs of HarmonicIO, Python workers of Flink.

A port, on loopback unless the site file says more, that accepts only who knows the secret. It trusts nobody else: the
number of connections is limited, one that does not say the secret in time is closed, nothing that follows a wrong
secret is read, and refusals fill no log.
"""

import contextlib
import socket
import threading
import time
from secrets import compare_digest, token_hex
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.config.address import Address
from bench.errors import SiteError
from bench.services.ports import LOOPBACK, listen_at
from bench.system.ipc import Inbox, Ready
from bench.workload.delivery_counts import ProcessingReport
from frameworks.refusals import Refusals
from frameworks.report_connection import ReportAddress, ReportHello

MAX_CONNECTIONS = 256
SECRET_TIMEOUT_S = 10.0
"""For a connection to say the secret."""


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
        self._hello = msgspec.json.encode(ReportHello(self.address.secret)) + b"\n"
        self._restarts, self._refusals = restarts, Refusals()
        self._unknown: set[socket.socket] = set()
        """connections that have not said the secret"""
        self._inboxes: list[Inbox[Any]] = []
        """of those that have"""
        self._ready: dict[int, int] = {}  # the restarts before each worker
        threading.Thread(target=self._accept, daemon=True, name="reports").start()

    def ready(self) -> int:
        """Return how many workers are connected."""
        self.received()
        return len(self._ready)

    def ended(self) -> int:
        """Return how many of them have ended."""
        return sum(inbox.ended for index, inbox in enumerate(self._inboxes) if index in self._ready)

    def received(self) -> list[ProcessingReport]:
        """Return what was reported since the last call."""
        reports: list[ProcessingReport] = []
        for index, inbox in enumerate(list(self._inboxes)):
            if index not in self._ready:
                self._ready[index] = self._count_restarts()
            received = [one for one in inbox.receive() if isinstance(one, ProcessingReport)]
            reports += [replace(one, restart=self._ready[index]) for one in received]
        return reports

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or who waits in `accept` keeps the port
        self._listener.close()
        for sock in list(self._unknown):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # its thread closes it
        for inbox in self._inboxes:
            inbox.close()

    def _count_restarts(self) -> int:
        """Return the restarts before a worker that connects now."""
        before = max(self._ready.values(), default=0)
        return before + 1 if self._restarts and self._ready and self.ended() == len(self._ready) else before

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if len(self._unknown) + sum(not inbox.ended for inbox in self._inboxes) >= MAX_CONNECTIONS:
                sock.close()
                self._refusals.add(f"there are {MAX_CONNECTIONS} already")
                continue
            self._unknown.add(sock)
            threading.Thread(target=self._admit, args=(sock,), daemon=True, name="secret").start()

    def _admit(self, sock: socket.socket) -> None:
        """Receive the messages of a connection from now on; close it if it does not say the secret."""
        try:
            self._read_secret(sock)
        except OSError as problem:
            sock.close()
            self._refusals.add(f"it did not say the secret: {problem}")
        else:
            self._inboxes.append(Inbox(sock, ProcessingReport | Ready))  # type: ignore[arg-type]  # a union of tagged structs
        finally:
            self._unknown.discard(sock)

    def _read_secret(self, sock: socket.socket) -> None:
        """Read the first line and nothing more. Raises OSError where it is not there in time, or is another one."""
        said, deadline = b"", time.monotonic() + SECRET_TIMEOUT_S
        while len(said) < len(self._hello) and b"\n" not in said:
            sock.settimeout(max(0.001, deadline - time.monotonic()))
            piece = sock.recv(len(self._hello) - len(said))
            if not piece:
                raise ConnectionError("it was closed")
            said += piece
        if not compare_digest(said, self._hello):
            raise ConnectionError("its first line is another one")
