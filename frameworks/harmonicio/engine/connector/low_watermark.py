"""The low watermark of a session: no message below it is unacknowledged, so that a PE need not remember older ones."""

from collections import deque


class LowWatermark:
    """Frames by their first numbers, added in ascending order and settled in any; each step takes constant time."""

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        self._open: set[int] = set()

    def add(self, first: int) -> None:
        """Add a new frame."""
        self._order.append(first)
        self._open.add(first)

    def settle(self, first: int) -> None:
        """Settle a frame: it was acknowledged, or given up."""
        self._open.discard(first)

    def lowest(self, next_number: int) -> int:
        """Return the first number of the oldest frame that is not settled; `next_number` where all are."""
        while self._order and self._order[0] not in self._open:
            self._order.popleft()
        return self._order[0] if self._order else next_number
