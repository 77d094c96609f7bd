"""Invented input for everything that reads what others wrote: an exception that is not foreseen is a failure.

Where an input ends in a new place of the code, it becomes a seed of further ones: a cheap stand-in for coverage.
"""

import gc
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import psutil

from tests.campaign import fuzz_readers, fuzz_reports, fuzz_servers
from tests.campaign.mutation import Mutator
from tests.campaign.outcomes import FuzzRecord

CORPUS = Path(__file__).parent / "corpus"
"""A folder for each target, with inputs that once were failures."""
FAILURES = Path("results") / "fuzzing-failures"
MAX_GROWTH_BYTES = 64 * 2**20
"""An allocator keeps some of what passed through."""
MAX_POOL, MAX_FAILURES = 2000, 20
Place = tuple[str, tuple[int, ...]]


class Target(Protocol):
    """A reader under test, open."""

    seeds: list[bytes]
    """valid inputs"""
    expected: tuple[type[Exception], ...]
    """the foreseen errors"""

    def read(self, data: bytes) -> None:
        """Read an input; raise one of the expected errors, or nothing."""

    def repair(self, data: bytes) -> bytes:
        """Return the input with checksums that are right, so that it is read beyond them."""


TARGETS: dict[str, Callable[[Path], AbstractContextManager[Target]]] = {
    **fuzz_readers.TARGETS,
    **fuzz_reports.TARGETS,
    **fuzz_servers.TARGETS,
}
"""By name: opens the target, with a folder for its files."""


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(TARGETS)


def fuzz(name: str, inputs: int, seed: int) -> FuzzRecord:
    """Give so many invented inputs to a target, after those of its corpus; failures are kept as files."""
    began, found = time.monotonic(), list[str]()
    places: set[Place] = set()
    grown = 0
    with _opened(name) as target:
        mutator = Mutator([*target.seeds, *corpus(name)], f"{name} {seed}")
        after_tenth = 0
        for number, data in enumerate(_inputs(mutator, target, inputs)):
            if number == inputs // 10:
                after_tenth = _resident_bytes()
            problem, place = _read(target, data)
            if problem is not None:
                found.append(f"{problem} ({_keep(name, data)})")
                if len(found) >= MAX_FAILURES:
                    break
            elif place not in places and len(mutator.pool) < MAX_POOL:
                places.add(place)
                mutator.pool.append(data)
        grown = max(0, _resident_bytes() - after_tenth) if after_tenth else 0
    if grown > MAX_GROWTH_BYTES:
        found.append(f"memory has grown by {grown / 2**20:.0f} MiB")
    return FuzzRecord(name, seed, inputs, time.monotonic() - began, grown, tuple(found))


def check_corpus(name: str) -> list[str]:
    """Return the failures among the seeds and the saved inputs of a target."""
    with _opened(name) as target:
        read = [_read(target, data)[0] for data in [*target.seeds, *corpus(name)]]
    return [problem for problem in read if problem is not None]


def corpus(name: str) -> list[bytes]:
    """Return the saved inputs of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


@contextmanager
def _opened(name: str) -> Iterator[Target]:
    with TemporaryDirectory(prefix=f"fuzz-{name}-") as folder, TARGETS[name](Path(folder)) as target:
        yield target


def _inputs(mutator: Mutator, target: Target, inputs: int) -> Iterator[bytes]:
    """Yield inputs; every other one with checksums that are right."""
    for number in range(inputs):
        data = mutator.draw()
        yield target.repair(data) if number % 2 else data


def _read(target: Target, data: bytes) -> tuple[str | None, Place]:
    """Return what failed, None if nothing did, and the place of the code at which the input was refused."""
    try:
        target.read(data)
    except target.expected as error:
        return None, _place(error)
    except Exception as error:  # noqa: BLE001  every other one is a failure, and the next input is read
        lines = _place(error)[1]
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} (lines {lines[-3:]})", ("", ())
    return None, ("read", ())


def _place(error: BaseException) -> Place:
    lines, trace = [], error.__traceback__
    while trace is not None:
        lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return type(error).__name__, tuple(lines)


def _keep(name: str, data: bytes) -> Path:
    """Write an input to a file, and return its path."""
    path = FAILURES / name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _resident_bytes() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)
