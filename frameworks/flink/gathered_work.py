"""The work on messages that an engine gives one by one."""

from collections.abc import Callable, Sequence
from threading import Lock

from bench.workload.delivery_counts import ProcessingReport


class GatheredWork:
    """Gathers messages and processes several at once, which share the fixed cost of a call: 0.13 ms on a shared core.

    Messages that have waited for others from one call of `flush_waiting` to the next are processed then, in the thread
    that calls it.

    Args:
        process: The work on messages.
        most: Messages that are processed at once.
    """

    def __init__(self, process: Callable[[Sequence[bytes]], list[ProcessingReport]], most: int) -> None:
        self._process, self._most = process, most
        self._messages: list[bytes] = []
        self._waiting, self._lock = False, Lock()

    def add(self, message: bytes) -> list[ProcessingReport]:
        """Take a message; return the reports of what was processed with it, none while it waits for others."""
        with self._lock:
            self._messages.append(message)
            return self._process_all() if len(self._messages) >= self._most else []

    def flush_waiting(self) -> list[ProcessingReport]:
        """Process the messages that wait since the last call; return their reports."""
        with self._lock:
            waited, self._waiting = self._waiting, bool(self._messages)
            return self._process_all() if waited else []

    def flush(self) -> list[ProcessingReport]:
        """Process all messages that wait; return their reports."""
        with self._lock:
            return self._process_all()

    def _process_all(self) -> list[ProcessingReport]:
        messages, self._messages, self._waiting = self._messages, [], False
        return self._process(messages) if messages else []
