"""Speed of this machine, by two fixed pieces of work. A shared machine is not equally fast on every day."""

import random
import time
import zlib
from collections.abc import Callable, Sequence
from statistics import fmean, median

from msgspec import Struct

TURNS = 5
_TEXT = random.Random(1).randbytes(2**15).hex().encode()  # noqa: S311  the same on every machine
_BLOCK_BYTES = 2**24


class MachineSpeed(Struct, frozen=True):
    """Work that one thread does in a second of its CPU time, in bytes/s."""

    cpu: float
    """compressed by zlib, from the core's caches"""
    memory: float
    """copied, of blocks that are larger than a core's caches"""


def measure_speed() -> MachineSpeed:
    """Return the median of a few turns; takes 30 to 100 ms of CPU time."""
    block, copy = bytes(_BLOCK_BYTES), bytearray(_BLOCK_BYTES)

    def copy_block() -> None:
        copy[:] = block

    compressed = len(_TEXT) / median(_cpu_seconds(lambda: zlib.compress(_TEXT, 1)))
    return MachineSpeed(round(compressed), round(_BLOCK_BYTES / median(_cpu_seconds(copy_block))))


def mean_speed(speeds: Sequence[MachineSpeed]) -> MachineSpeed | None:
    """Return the means of several measurements, which count the slow moments of a run too; None without any."""
    if not speeds:
        return None
    return MachineSpeed(fmean(each.cpu for each in speeds), fmean(each.memory for each in speeds))


def speed_ratios(before: MachineSpeed | None, after: MachineSpeed | None) -> dict[str, float]:
    """Return `after` divided by `before`, by kind of work; empty where one of them was not measured."""
    if before is None or after is None:
        return {}
    return {"CPU": after.cpu / before.cpu, "memory bandwidth": after.memory / before.memory}


def _cpu_seconds(work: Callable[[], object]) -> list[float]:
    """Return the CPU seconds of each turn, after one that is not counted."""
    work()
    seconds = []
    for _ in range(TURNS):
        began = time.thread_time()
        work()
        seconds.append(max(1e-9, time.thread_time() - began))
    return seconds
