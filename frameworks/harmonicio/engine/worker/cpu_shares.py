"""The CPU share that each PE has used between two readings; pure."""


class CpuShares:
    """The last reading of each PE.

    Args:
        cores: of this host.
        max_entries: readings that are kept; the oldest are dropped.
    """

    def __init__(self, cores: int, max_entries: int) -> None:
        self._cores, self._max_entries = cores, max_entries
        self._readings: dict[str, tuple[float, float]] = {}

    def update(self, pe_id: str, cpu_seconds: float, now: float) -> float | None:
        """Record a reading; return the share of all cores used since the last one, None at the first.

        Args:
            pe_id: id of the PE.
            cpu_seconds: CPU time that it has used so far.
            now: monotonic seconds.
        """
        previous = self._readings.get(pe_id)
        self._readings[pe_id] = (now, cpu_seconds)
        while len(self._readings) > self._max_entries:
            del self._readings[next(iter(self._readings))]
        if previous is None or now <= previous[0]:
            return None
        return max(0.0, cpu_seconds - previous[1]) / (now - previous[0]) / self._cores
