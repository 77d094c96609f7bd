"""The sender into the pipe."""

from collections.abc import Sequence

from bench.plugins.protocols import Endpoint
from bench.system.pipe import Pipe


class MemorySender:
    """Writer into the pipe; what is in it counts as confirmed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._pipe, self._confirmed = Pipe.named(endpoint.address), 0

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        taken = self._pipe.put(messages)
        self._confirmed += taken
        return taken

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        return self._confirmed, 0

    def close(self) -> None:
        """Do nothing: the pipe belongs to the source."""
