"""The credit that the master's data port gives to connectors, without I/O; times are monotonic seconds."""

MAX_CREDIT = (65536, 64 * 2**20)
"""Most messages and bytes that one connector may have unacknowledged."""
PAUSE_S = 1.0
"""Time without credit after the journal failed: a rejected connector reconnects at once and sends everything again."""


def min_free_bytes(max_message_bytes: int) -> int:
    """Return the free bytes of a queue below which it gives no credit."""
    return min(max_message_bytes, MAX_CREDIT[1])


class CreditPolicy:
    """Shares the free space of the queue out to the connections, and knows what was announced to them."""

    def __init__(self, max_message_bytes: int) -> None:
        self._min_bytes = min_free_bytes(max_message_bytes)
        self._announced_bytes = 0
        self._paused_until = 0.0

    def compute(self, free: tuple[int, int], connections: int, now: float) -> tuple[int, int]:
        """Return the credit (messages, bytes) of each connection; (0, 0) without space for a large message, or paused.

        Half of the free bytes is shared out, so that they suffice for twice the credit, too (`lower`).
        """
        messages, size = free
        connections = max(1, connections)
        if now < self._paused_until or messages < connections or size < self._min_bytes:
            return 0, 0
        return min(MAX_CREDIT[0], messages // connections), min(MAX_CREDIT[1], max(1, size // (2 * connections)))

    def announce(self, credit: tuple[int, int]) -> None:
        """Record that a credit was sent to a connector."""
        self._announced_bytes = max(self._announced_bytes, credit[1])

    def lower(self, credit: tuple[int, int]) -> bool:
        """Return whether every connector must be sent this credit: it is less than half of what was announced.

        Idle connectors would otherwise rely on the larger one.
        """
        if 2 * credit[1] >= self._announced_bytes:
            self.announce(credit)
            return False
        self._announced_bytes = credit[1]
        return True

    def pause(self, now: float) -> None:
        """Give no credit for a while."""
        self._paused_until = now + PAUSE_S
