"""The begin of a micro-batch by this process's clock, from what Spark says of its triggers and jobs."""

from bench.system.clock import epoch


class BatchClock:
    """The clock of one stream, whose batches follow one another.

    Spark has the result of a batch before it has committed it, and the next batch cannot begin until then. The result
    is reported at once; the commit is known only when the next batch runs, and is counted there: a batch begins earlier
    by the commit of the batch before it. Hence batches do not overlap, and their times, from begin to result, add up
    to Spark's own: `triggerExecution` of Structured Streaming, the processing time of DStreams. The first batch of a
    stream has no commit in it.
    """

    def __init__(self) -> None:
        self._commit_s = 0.0
        self._result_at: float | None = None

    def begin(self, started_ms: int, before_ended_ms: int | None) -> float:
        """Return the CLOCK_MONOTONIC seconds at which a batch began.

        Args:
            started_ms: Time of day at which Spark began to plan the batch, in milliseconds since 1970.
            before_ended_ms: When it had committed the batch before; None if it has not said so, and the batch before
                that stands for it.
        """
        offset_s = epoch()
        if self._result_at is None:
            return started_ms / 1000 - offset_s
        if before_ended_ms is not None:
            self._commit_s = max(0.0, before_ended_ms / 1000 - offset_s - self._result_at)
        return max(self._result_at, started_ms / 1000 - offset_s - self._commit_s)

    def end(self, at: float) -> None:
        """Note the CLOCK_MONOTONIC seconds at which the result of the batch existed."""
        self._result_at = at
