"""The connection over which a worker that an engine has started reports to the harness; runs in the engine's worker."""

import contextlib
import socket
from collections.abc import Callable
from threading import Event, Lock, Thread

from msgspec import Struct

from bench.system.ipc import Channel, Ready
from bench.workload.delivery_counts import ProcessingReport, merge_reports

REPORT_INTERVAL_S = 0.05
_TIMEOUT_S = 10.0


class ReportHello(Struct, frozen=True, tag="secret"):
    """The first line to the harness."""

    secret: str


class ReportAddress(Struct, frozen=True):
    """The address of a report server (frameworks.report_server), and the secret that it asks for."""

    host: str
    port: int
    secret: str


class ReportConnection:
    """A connection to a report server, with a thread that sends what was reported.

    It is for engines that do not tell their functions when there is nothing to do: reports that wait are sent all the
    same. Raises OSError where nobody listens.

    Args:
        address: of the server.
        at_once: whether reports are sent when they are added: nothing is unsent if the process is killed after that.
        flush: returns the reports of work that waits for more; called by the thread, before it sends.
    """

    def __init__(
        self,
        address: ReportAddress,
        *,
        at_once: bool = False,
        flush: Callable[[], list[ProcessingReport]] = list,
    ) -> None:
        sock = socket.create_connection((address.host, address.port), timeout=_TIMEOUT_S)
        self._channel: Channel[Ready] = Channel(sock, Ready)
        self._channel.send(ReportHello(address.secret))
        self._channel.send(Ready())
        self._at_once, self._flush = at_once, flush
        self._reports: list[ProcessingReport] = []
        self._lock, self._closed = Lock(), Event()
        self._sender = Thread(target=self._send_regularly, daemon=True, name="reports")
        self._sender.start()

    def add(self, reports: list[ProcessingReport]) -> None:
        """Have reports sent within REPORT_INTERVAL_S; send them before it returns if they are to go at once.

        Raises OSError where the harness is gone, or does not take them: work that is not counted must end.
        """
        if not (self._sender.is_alive() or self._closed.is_set()):
            raise OSError("reports are not taken any more")
        if self._at_once:
            self._send(reports)
            return
        with self._lock:
            self._reports += reports

    def close(self) -> None:
        """Send the rest and disconnect."""
        self._closed.set()
        self._sender.join(_TIMEOUT_S)
        self._channel.close()

    def _send_regularly(self) -> None:
        with contextlib.suppress(OSError):  # a harness that is gone needs no reports; `add` says so to the worker
            while not self._closed.wait(REPORT_INTERVAL_S):
                self._send(self._take())
            self._send(self._take())

    def _take(self) -> list[ProcessingReport]:
        flushed = self._flush()
        with self._lock:
            reports, self._reports = self._reports, []
        return reports + flushed

    def _send(self, reports: list[ProcessingReport]) -> None:
        for report in merge_reports(reports):
            self._channel.send(report)
