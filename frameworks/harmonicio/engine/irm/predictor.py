"""The load predictor: how many PEs to add, from the queue's length and how fast it grows (reference, section 13.4)."""

from dataclasses import dataclass

from frameworks.harmonicio.engine.irm.parameters import Parameters


def growth(length: int, before: int | None, seconds: float) -> int:
    """Messages/s by which a queue grew, truncated towards zero; the first time its whole length counts."""
    return int((length - (before or 0)) / seconds)


def pes_to_add(rate: int, length: int, parameters: Parameters) -> int:
    """The first rule that holds decides."""
    p = parameters
    if rate > p.upper_rate_limit or (length > p.queue_size_limit and rate > p.slowdown_rate):
        return p.large_scaleup_amount
    if rate > p.lower_rate_limit or length > p.queue_size_limit:
        return p.small_scaleup_amount
    return 0


@dataclass(slots=True)
class Predictor:
    """Of one image; remembers the last length and when PEs were added last."""

    parameters: Parameters
    length: int | None = None
    added_at: float = float("-inf")

    def look(self, length: int, now: float) -> int:
        """PEs to add; called every `predictor_interval`."""
        rate = growth(length, self.length, self.parameters.predictor_interval)
        self.length = length
        if now <= self.added_at + self.parameters.scaleup_waiting_time:
            return 0
        more = pes_to_add(rate, length, self.parameters)
        if more:
            self.added_at = now
        return more
