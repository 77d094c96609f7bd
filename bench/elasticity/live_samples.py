"""Samples of a running system, from what its workers have counted.

A system is one operator here, whose instances are its workers, and its load is one source. Counters only grow, so that
a sample needs no more than the counters at both of its ends, and a report that comes late is missing in none of them.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from bench.elasticity.dataflow import chain
from bench.elasticity.samples import InstanceSample, Sample

SOURCE, OPERATOR = "source", "system"
FLOW = chain(SOURCE, OPERATOR)
"""A system as policies see it."""


class WorkerCounters(Struct, frozen=True):
    """The work of one worker since it started."""

    worker: str
    """a name that no other worker ever has"""
    at: float
    """CLOCK_MONOTONIC seconds at which it counted"""
    processed: int
    """messages"""
    useful_s: float
    """seconds of deserialising, processing and serialising"""


class Offered(Struct, frozen=True):
    """The load of an interval, and what was left of it at its end."""

    rate: float
    """messages/s that were due, on average"""
    waiting: int
    """messages at its end that have been due for longer than they take to reach a worker"""


class WorkerMeter:
    """Makes samples from the counters of workers; the first sample begins with the counters that it gets first."""

    def __init__(self, workers: Sequence[WorkerCounters]) -> None:
        self._last = {one.worker: one for one in workers}
        self._waiting = 0

    def sample(self, workers: Sequence[WorkerCounters], offered: Offered, *, at: float, seconds: float) -> Sample:
        """Return the sample of the interval that ends now.

        What a worker counted is scaled to the interval, since it did not count at its very ends. A worker that is new
        counts from its start. What was due and does not wait was taken. Where messages wait, the sources are taken to
        have stopped for the share of time by which the load is too high, as in a simulated job.

        Args:
            workers: Those that process messages now.
            offered: The load of the interval.
            at: The end of the interval, in seconds since the first one began.
            seconds: Its length.
        """
        instances = tuple(self._instance(one, seconds) for one in workers)
        grown, waiting = offered.waiting - self._waiting, offered.waiting
        done = sum(one.processed for one in instances)
        stopped = seconds * waiting / (waiting + done) if waiting else 0.0
        pressed = tuple(replace(one, backpressure_s=stopped / len(instances)) for one in instances)
        self._last, self._waiting = {one.worker: one for one in workers}, waiting
        taken = max(0.0, offered.rate - grown / seconds)
        return Sample(
            at, seconds, {SOURCE: offered.rate}, {SOURCE: taken}, {OPERATOR: pressed}, {SOURCE: float(waiting)}
        )

    def _instance(self, now: WorkerCounters, seconds: float) -> InstanceSample:
        before = self._last.get(now.worker)
        since = now.at - before.at if before is not None else seconds
        scale = seconds / since if since > 0 else 0.0
        processed = scale * (now.processed - (before.processed if before is not None else 0))
        useful_s = scale * (now.useful_s - (before.useful_s if before is not None else 0.0))
        return InstanceSample(processed, processed, min(seconds, useful_s))
