"""Bounded pipes within a process, found by name: they connect a source with its readers."""

from collections import deque
from collections.abc import Sequence
from threading import Condition
from typing import ClassVar


class Pipe:
    """Messages in order, for one writer and any number of readers.

    Holds at most `max_messages` and `max_bytes`, but always at least one message. 16 MB fit a CPU cache: with 256 MB,
    every message of 10 kB was written to memory that had to be fetched first.
    """

    _named: ClassVar[dict[str, "Pipe"]] = {}

    def __init__(self, max_messages: int = 200_000, max_bytes: int = 16 * 10**6) -> None:
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._batches: deque[Sequence[bytes]] = deque()
        self._count = self._bytes = 0
        self._changed = Condition()

    @classmethod
    def named(cls, name: str) -> "Pipe":
        """Return the pipe with that name; create it the first time."""
        return cls._named.setdefault(name, cls())

    @classmethod
    def forget(cls, name: str) -> None:
        """Remove the pipe with that name, if there is one."""
        cls._named.pop(name, None)

    def put(self, messages: Sequence[bytes]) -> int:
        """Add as many of the messages as fit, in order, and return their number. Never blocks."""
        with self._changed:
            size = len(messages[0]) if messages else 0
            fitting = (self._max_bytes - self._bytes) // max(1, size)
            count = min(self._max_messages - self._count, max(fitting, self._count == 0), len(messages))
            if count <= 0:
                return 0
            taken = messages[:count]
            self._batches.append(taken)
            self._count += len(taken)
            self._bytes += sum(map(len, taken))
            self._changed.notify()
            return len(taken)

    def take(self, max_messages: int, timeout: float) -> Sequence[bytes]:
        """Remove and return the oldest messages, `max_messages` at most; empty if none came within `timeout` s."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._count > 0, timeout):
                return ()
            taken: list[bytes] = []
            while self._batches and len(taken) < max_messages:
                batch, wanted = self._batches.popleft(), max_messages - len(taken)
                taken.extend(batch[:wanted])
                if len(batch) > wanted:
                    self._batches.appendleft(batch[wanted:])
            self._count -= len(taken)
            self._bytes -= sum(map(len, taken))
            return taken
