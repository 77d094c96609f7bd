"""A framework of known capacity: at most `ceiling` messages a second, in this process.

It can make mistakes on purpose.

With it the harness measures itself: what it reports must be the capacity, and every mistake must be found.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, Struct

from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Consumer, Endpoint
from bench.plugins.reporting_thread import ReportingThread
from bench.units import Rate, Seconds
from bench.workload.processing import MessageProcessor

Mistake = Literal["lose", "duplicate", "swap", "flip", "die"]
SAVED_MESSAGES, SAVED_PAUSES = 3, 1.25
"""What the token bucket holds, whichever is more: tokens, and what comes in between two readings."""


class CapacitySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A framework of known capacity, which can make mistakes on purpose."""

    ceiling: Rate = Rate(5000)
    """capacity in messages/s"""
    batch_interval: Seconds = Seconds(0)
    """interval at which results show"""
    mistake: Mistake | None = None
    every: Annotated[int, Meta(ge=1)] = 1000
    """one mistake in so many messages"""


class CapacityFramework:
    """One thread that takes messages no faster than the capacity."""

    def __init__(self, settings: CapacitySettings) -> None:
        self._settings = settings
        self._next_mistake = settings.every

    @property
    def batch_interval(self) -> float:
        """Return the seconds between two moments at which it shows progress."""
        return float(self._settings.batch_interval)

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:  # noqa: ARG002  any cell can be tried
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        return registry.missing_consumer(source)

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> ReportingThread:  # noqa: ARG002  it runs in this process
        """Start to process the endpoint's messages; return the running thread, whose reports are polled."""
        return ReportingThread("capacity", partial(self._run, registry.open_consumer(endpoint), work))

    def _run(self, consumer: Consumer, work: MessageProcessor, thread: ReportingThread) -> None:
        received = 0
        with closing(consumer):
            for batch in self._paced(consumer, thread):
                if self._settings.mistake == "die" and received + len(batch) >= self._settings.every:
                    break
                for report in work.process(self._mistaken(batch, received)):
                    thread.report(report)
                received += len(batch)

    def _paced(self, consumer: Consumer, thread: ReportingThread) -> Iterator[Sequence[bytes]]:
        """Yield batches from a token bucket: a message takes a token, and a few are kept while there are no messages.

        A bucket that kept none would lose tokens whenever it is busy with a message, and have a lower capacity than it
        says.
        """
        ceiling, interval = float(self._settings.ceiling), self.batch_interval
        pause = interval or min(0.02, max(0.001, 1 / ceiling))
        allowed_from, saved = time.monotonic(), max(SAVED_MESSAGES / ceiling, SAVED_PAUSES * pause)
        while not thread.wait(pause - time.monotonic() % pause):
            allowed_from = max(allowed_from, time.monotonic() - saved)
            tokens = int((time.monotonic() - allowed_from) * ceiling)
            batch = consumer.take(tokens, 0.05 if interval == 0 else 0) if tokens else ()
            allowed_from += len(batch) / ceiling
            if batch:
                yield batch

    def _mistaken(self, batch: Sequence[bytes], received: int) -> Sequence[bytes]:
        """Return the batch with the mistake where one is due; a batch of one message passes unchanged."""
        mistake = self._settings.mistake
        if mistake is None or len(batch) < 2 or received + len(batch) <= self._next_mistake:
            return batch
        place = min(max(0, self._next_mistake - received), len(batch) - 2)
        self._next_mistake += self._settings.every
        one, two = batch[place], batch[place + 1]
        instead = {"lose": [two], "duplicate": [one, one, two], "swap": [two, one], "flip": [_flipped(one), two]}
        return [*batch[:place], *instead[mistake], *batch[place + 2 :]]


def _flipped(message: bytes) -> bytes:
    return message[:-1] + bytes([message[-1] ^ 1])
