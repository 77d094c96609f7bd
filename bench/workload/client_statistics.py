"""Statistics that a source's client keeps of itself, as samples of a trace."""

import time
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from bench.model.trace import TraceEvents, TraceSample

INTERVAL_S = 1.0
"""Between two samples; clients renew their statistics as often."""


@runtime_checkable
class ClientWithStatistics(Protocol):
    """A sender or a consumer whose library keeps statistics."""

    def statistics(self) -> Mapping[str, float]:
        """Return what the library says by now, by metric with its unit, such as `round_trip_s`; empty before it does.

        It costs little, and changes nothing.
        """


class StatisticsSampler:
    """A sampler of one client; of a client without statistics it takes nothing.

    Args:
        client: a sender or a consumer.
        entity: the name of the client in the trace.
        ahead_s: seconds by which the clock of the harness's machine is ahead of this machine's.
    """

    def __init__(self, client: object, entity: str, *, ahead_s: float = 0.0) -> None:
        self._client = client if isinstance(client, ClientWithStatistics) else None
        self._entity, self._ahead_s, self._next_s = entity, ahead_s, 0.0

    def take(self) -> TraceEvents | None:
        """Return samples of now; None within an interval of the last ones, or where there are none."""
        now = time.monotonic()
        if self._client is None or now < self._next_s:
            return None
        self._next_s = now + INTERVAL_S
        at = round((now + self._ahead_s) * 1e9)
        found = self._client.statistics().items()
        samples = [TraceSample(at, self._entity, metric, value) for metric, value in found]
        return TraceEvents(samples=samples) if samples else None
