"""How much a PE lets be on its way: a quarter of a second's work, never less than two messages."""

SECONDS = 0.25
FEWEST, MOST, AT_FIRST = 2, 65536, 16
BYTES = 4 * 2**20
"""More is on its way out of the caches when its turn comes (harmonicio bench at 10 kB: a third less)."""
_WEIGHT = 0.2


class Window:
    """Follows how long a message takes."""

    def __init__(self) -> None:
        self._each: float | None = None

    @property
    def messages(self) -> int:
        """That may be unacknowledged, of all guests together."""
        if self._each is None:
            return AT_FIRST
        return max(FEWEST, min(MOST, int(SECONDS / max(self._each, 1e-9))))

    def took(self, seconds: float, count: int) -> None:
        """Learn what a batch took."""
        each = seconds / max(1, count)
        self._each = each if self._each is None else self._each + _WEIGHT * (each - self._each)

    def share(self, guests: int) -> tuple[int, int]:
        """(messages, bytes) for each of so many guests."""
        guests = max(1, guests)
        return max(1, -(-self.messages // guests)), max(2**19, BYTES // guests)
