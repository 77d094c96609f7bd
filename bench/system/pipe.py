"""Bounded pipes within this process, found by name: what the memory source is made of."""

from collections import deque
from collections.abc import Sequence
from threading import Condition
from typing import ClassVar


class Pipe:
    """Messages in order, at most `most_messages` and `most_bytes` of them, or one; for one writer and any number of readers.

    So many bytes fit a cache: with 256 MB, every message of 10 kB was written to memory that had to be fetched first.
    """

    _named: ClassVar[dict[str, "Pipe"]] = {}

    def __init__(self, most_messages: int = 200_000, most_bytes: int = 16 * 10**6) -> None:
        self._most_messages, self._most_bytes = most_messages, most_bytes
        self._batches: deque[Sequence[bytes]] = deque()
        self._count = self._bytes = 0
        self._changed = Condition()

    @classmethod
    def named(cls, name: str) -> "Pipe":
        """The pipe of that name; a new one the first time."""
        return cls._named.setdefault(name, cls())

    @classmethod
    def forget(cls, name: str) -> None:
        cls._named.pop(name, None)

    def put(self, messages: Sequence[bytes]) -> int:
        """Add messages in order; how many there was room for. Never blocks."""
        with self._changed:
            size = len(messages[0]) if messages else 0
            fitting = (self._most_bytes - self._bytes) // max(1, size)
            room = min(self._most_messages - self._count, max(fitting, self._count == 0), len(messages))
            if room <= 0:
                return 0
            taken = messages[:room]
            self._batches.append(taken)
            self._count += len(taken)
            self._bytes += sum(map(len, taken))
            self._changed.notify()
            return len(taken)

    def take(self, most: int, timeout: float) -> Sequence[bytes]:
        """The oldest messages, at most `most`; empty when none came within `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._count > 0, timeout):
                return ()
            taken: list[bytes] = []
            while self._batches and len(taken) < most:
                batch, room = self._batches.popleft(), most - len(taken)
                taken.extend(batch[:room])
                if len(batch) > room:
                    self._batches.appendleft(batch[room:])
            self._count -= len(taken)
            self._bytes -= sum(map(len, taken))
            return taken
