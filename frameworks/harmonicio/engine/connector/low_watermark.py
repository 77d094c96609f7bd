"""The floor of a session: below it nothing is unacknowledged, so that a PE need not remember what passed."""

from collections import deque


class Floor:
    """Of frames, by their first numbers, which come in ascending order and are settled in any; each step in constant time."""

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        self._open: set[int] = set()

    def add(self, first: int) -> None:
        """A frame was made."""
        self._order.append(first)
        self._open.add(first)

    def settle(self, first: int) -> None:
        """It was acknowledged, or given up."""
        self._open.discard(first)

    def lowest(self, beyond: int) -> int:
        """The first number of the oldest frame that is not settled; `beyond` where all are."""
        while self._order and self._order[0] not in self._open:
            self._order.popleft()
        return self._order[0] if self._order else beyond
