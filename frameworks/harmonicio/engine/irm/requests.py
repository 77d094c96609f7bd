"""The container queue: requests for PEs with a number of attempts."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A PE that is asked for; `ttl` is how often it may be put back, `size` the share of a worker's CPU if known."""

    key: int
    c_name: str
    image: str = ""
    volatile: bool = True
    ttl: int = 1
    size: float | None = None
    settings: tuple[tuple[str, Any], ...] = ()


class RequestQueue:
    """First in, first out."""

    def __init__(self, ttl: int) -> None:
        self._ttl = ttl
        self._waiting: deque[Request] = deque()
        self._next = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, c_name: str, *, image: str = "", volatile: bool = True, size: float | None = None) -> Request:
        """Put a new request in."""
        self._next += 1
        request = Request(self._next, c_name, image, volatile, self._ttl, size)
        self._waiting.append(request)
        return request

    def again(self, request: Request) -> bool:
        """Put one back that could not be done; False when it has been put back too often and is dropped."""
        if request.ttl <= 0:
            self.dropped += 1
            return False
        self._waiting.append(replace(request, ttl=request.ttl - 1))
        return True

    def drain(self) -> list[Request]:
        """Take all of them."""
        drained, self._waiting = list(self._waiting), deque()
        return drained

    def names(self) -> set[str]:
        """Of what is asked for."""
        return {request.c_name for request in self._waiting}
