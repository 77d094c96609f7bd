"""The load predictor: the PEs to add, from the length and the growth of the queue."""

from dataclasses import dataclass

from frameworks.harmonicio.engine.irm.parameters import Parameters


def growth(length: int, before: int | None, seconds: float) -> int:
    """Return the growth of a queue in messages/s, truncated towards zero; at first its whole length counts."""
    return int((length - (before or 0)) / seconds)


def pes_to_add(rate: int, length: int, parameters: Parameters) -> int:
    """Return the PEs to add: the first rule of the table that holds decides.

    Args:
        rate: growth of the queue, messages/s.
        length: messages in the queue.
        parameters: limits and amounts.
    """
    p = parameters
    if rate > p.upper_rate_limit or (length > p.queue_size_limit and rate > p.slowdown_rate):
        return p.large_scaleup_amount
    if rate > p.lower_rate_limit or length > p.queue_size_limit:
        return p.small_scaleup_amount
    return 0


@dataclass(slots=True)
class Predictor:
    """The predictor of one image: its last queue length, and when PEs were added last (monotonic seconds)."""

    parameters: Parameters
    length: int | None = None
    added_at: float = float("-inf")

    def update(self, length: int, now: float) -> int:
        """Return the PEs to add; to be called every `predictor_interval`."""
        rate = growth(length, self.length, self.parameters.predictor_interval)
        self.length = length
        if now <= self.added_at + self.parameters.scaleup_waiting_time:
            return 0
        more = pes_to_add(rate, length, self.parameters)
        if more:
            self.added_at = now
        return more
