"""The queue of requests for PEs, each with a number of attempts."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class PeRequest:
    """A request for one PE; `ttl` is how often it may be retried, `size` the share of a worker's CPU if known."""

    key: int
    c_name: str
    image: str = ""
    volatile: bool = True
    ttl: int = 1
    size: float | None = None
    settings: tuple[tuple[str, Any], ...] = ()


class RequestQueue:
    """Requests, first in, first out."""

    def __init__(self, ttl: int) -> None:
        self._ttl = ttl
        self._waiting: deque[PeRequest] = deque()
        self._next = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, c_name: str, *, image: str = "", volatile: bool = True, size: float | None = None) -> PeRequest:
        """Add a new request."""
        self._next += 1
        request = PeRequest(self._next, c_name, image, volatile, self._ttl, size)
        self._waiting.append(request)
        return request

    def retry(self, request: PeRequest) -> bool:
        """Put a failed request back; return False when it has been retried too often and is dropped."""
        if request.ttl <= 0:
            self.dropped += 1
            return False
        self._waiting.append(replace(request, ttl=request.ttl - 1))
        return True

    def forget(self, c_name: str) -> None:
        """Remove the requests for PEs of a stream."""
        self._waiting = deque(request for request in self._waiting if request.c_name != c_name)

    def drain(self) -> list[PeRequest]:
        """Remove and return all requests."""
        drained, self._waiting = list(self._waiting), deque()
        return drained
