"""Clocks of several machines: the clock that stamps messages, and how to read it on another machine."""

import time
from collections.abc import Callable

from bench.model.measurement import ClockOffset
from bench.model.message_header import ClockReference
from bench.system.procfs import boot_id


def epoch() -> float:
    """Return CLOCK_REALTIME minus CLOCK_MONOTONIC in seconds, accurate to a microsecond or two."""
    before, now, after = time.monotonic(), time.time(), time.monotonic()
    return now - (before + after) / 2


def local_clock(offset: ClockOffset | None = None, *, theirs: bool = False) -> ClockReference:
    """Return this machine's clock, for messages that other machines read or stamp.

    Args:
        offset: Largest clock offset among the hosts of the site; None if unknown.
        theirs: True if messages are stamped on other hosts that follow this clock.
    """
    return ClockReference(boot_id(), epoch(), offset.max_latency_error if offset is not None else None, theirs)


def seconds_ahead(clock: ClockReference) -> float:
    """Return the seconds by which a clock is ahead of this machine's; 0 for this machine's own."""
    return 0.0 if clock.boot in ("", boot_id()) else epoch() - clock.epoch


def make_reader(clock: ClockReference) -> Callable[[], float]:
    """Return a function that returns the time of a clock: CLOCK_MONOTONIC seconds of its machine."""
    ahead = seconds_ahead(clock)
    return (lambda: time.monotonic() + ahead) if ahead else time.monotonic
