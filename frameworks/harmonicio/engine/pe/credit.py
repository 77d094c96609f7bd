"""The credit of a PE: the messages that may be unacknowledged, a quarter of a second's work and never less than two."""

TARGET_S = 0.25
MIN_MESSAGES, MAX_MESSAGES, INITIAL_MESSAGES = 2, 65536, 16
MAX_BYTES = 4 * 2**20
"""With more, messages have left the CPU caches when they are processed (harmonicio bench at 10 kB: a third less)."""
_MIN_BYTES_EACH = 2**19
_WEIGHT = 0.2


class CreditWindow:
    """An exponentially weighted mean of the time per message, and the credit that follows from it."""

    def __init__(self) -> None:
        self._seconds_each: float | None = None

    @property
    def messages(self) -> int:
        """Return the messages that all connections together may have unacknowledged."""
        if self._seconds_each is None:
            return INITIAL_MESSAGES
        return max(MIN_MESSAGES, min(MAX_MESSAGES, int(TARGET_S / max(self._seconds_each, 1e-9))))

    def record(self, seconds: float, count: int) -> None:
        """Record the time that `count` messages took."""
        each = seconds / max(1, count)
        previous = self._seconds_each
        self._seconds_each = each if previous is None else previous + _WEIGHT * (each - previous)

    def share(self, connections: int) -> tuple[int, int]:
        """Return the credit (messages, bytes) of each of so many connections."""
        connections = max(1, connections)
        return max(1, -(-self.messages // connections)), max(_MIN_BYTES_EACH, MAX_BYTES // connections)
