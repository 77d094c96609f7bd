"""Clocks of several machines: whose is in the messages, and how another one reads it."""

import functools
import time
from collections.abc import Callable

from bench.model.measurement import ClockOffset
from bench.model.message_codec import ClockReference
from bench.system.procfs import boot_id


@functools.cache
def boot() -> str:
    """This boot of this machine."""
    return boot_id()


def epoch() -> float:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, in seconds; known to a microsecond or two."""
    before, now, after = time.monotonic(), time.time(), time.monotonic()
    return now - (before + after) / 2


def ours(apart: ClockOffset | None = None, *, theirs: bool = False) -> ClockReference:
    """This machine's clock, for messages that others read, or that they stamp."""
    return ClockReference(boot(), epoch(), apart.max_latency_error if apart is not None else None, theirs)


def ahead(clock: ClockReference) -> float:
    """Seconds by which a clock is ahead of this machine's; 0 where it is the same one."""
    return 0.0 if clock.boot in ("", boot()) else epoch() - clock.epoch


def reader(clock: ClockReference) -> Callable[[], float]:
    """What tells the time by a clock: CLOCK_MONOTONIC seconds of its machine."""
    there = ahead(clock)
    return (lambda: time.monotonic() + there) if there else time.monotonic
