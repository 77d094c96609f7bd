"""The harness's end of its PEs' accounts: a port on loopback that only who knows the secret may tell anything."""

import socket
import threading
from secrets import compare_digest, token_hex
from typing import Any

from bench.channel import Inbox
from bench.order import Ready
from bench.services.ports import LOOPBACK
from bench.tally import Report
from frameworks.harmonicio.job import Hello

_PATIENCE = 10.0


class Accounts:
    """Listens until closed."""

    def __init__(self) -> None:
        self.secret = token_hex(16)
        self._listener = socket.create_server((LOOPBACK, 0), backlog=64)
        self._inboxes: list[Inbox[Any]] = []
        self._ready: set[int] = set()
        threading.Thread(target=self._accept, daemon=True, name="accounts").start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def ready(self) -> int:
        """How many PEs can be worked with."""
        self.heard()
        return len(self._ready)

    def ended(self) -> bool:
        """Whether one of them has ended."""
        return any(inbox.ended for index, inbox in enumerate(self._inboxes) if index in self._ready)

    def heard(self) -> list[Report]:
        """What was told since the last call; whoever did not say the secret first is not listened to."""
        reports: list[Report] = []
        for index, inbox in enumerate(list(self._inboxes)):
            for one in inbox.heard():
                if isinstance(one, Hello) and compare_digest(one.secret, self.secret):
                    self._ready.add(index)
                elif isinstance(one, Report) and index in self._ready:
                    reports.append(one)
        return reports

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        for inbox in self._inboxes:
            inbox.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._inboxes.append(Inbox(sock, Hello | Report | Ready))  # type: ignore[arg-type]  # a union of tagged structs
