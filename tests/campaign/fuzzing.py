"""Invented input for everything that reads what others wrote: an exception that is not foreseen is a failure.

Where an input ends in a new place of the code, it becomes a seed of further ones: a cheap stand-in for coverage.
"""

import gc
import hashlib
import math
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import psutil
from msgspec.structs import replace

from tests.campaign import fuzz_readers, fuzz_reports, fuzz_servers
from tests.campaign.fuzz_reports import SEPARATOR
from tests.campaign.mutation import MAX_BYTES, Mutator
from tests.campaign.outcomes import FuzzRecord, Log

CORPUS = Path(__file__).parent / "corpus"
"""A folder for each target, with inputs that once were failures, and those that reach further places of its code."""
REACHED = "reached.b64"
"""One input a line."""
MAX_SAVED, MAX_SAVED_BYTES = 40, 1000
SHARED_MEMORY = Path("/dev/shm")
"""For the files of targets: where it exists, no input waits for a disk."""
FAILURES = Path("results") / "fuzzing-failures"
MAX_GROWTH_BYTES = 64 * 2**20
"""An allocator keeps some of what passed through. Typst needs about fifty documents until its memory is flat."""
MAX_POOL, MAX_FAILURES = 2000, 20
PIECE = 5000
"""Inputs between two lines of the log."""
GROUPS = {"page": 600, "typst": 150}
"""Inputs that are drawn at once, as texts of one page."""
MAX_YAML_BYTES = 1500
SHORT = dict.fromkeys(("scenario", "site", "engine-config"), MAX_YAML_BYTES)
"""Most bytes of an input, where the time of a reader is that of the characters; of the others as `mutation` says."""
Place = tuple[str, tuple[int, ...]]


class FuzzTarget(Protocol):
    """A reader under test, open."""

    seeds: list[bytes]
    """valid inputs"""
    expected: tuple[type[Exception], ...]
    """the foreseen errors"""

    def read(self, data: bytes) -> None:
        """Read an input; raise one of the expected errors, or nothing."""

    def repair(self, data: bytes) -> bytes:
        """Return the input with checksums that are right, so that it is read beyond them."""


TARGETS: dict[str, Callable[[Path], AbstractContextManager[FuzzTarget]]] = {
    **fuzz_readers.TARGETS,
    **fuzz_reports.TARGETS,
    **fuzz_servers.TARGETS,
}
"""By name: opens the target, with a folder for its files."""


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(TARGETS)


def fuzz_on(name: str, inputs: int, seed: int, log: Log, *, seconds: float, keep: bool = False) -> Iterator[FuzzRecord]:
    """Go on with a target where its log ends, piece by piece, and yield a record of each piece.

    Args:
        name: Of the target.
        inputs: That it is to have had in the end, from this seed.
        seed: Decides the inputs of each piece, with its number.
        log: Remembers the pieces.
        seconds: After which it pauses; a piece may be cut.
        keep: Save inputs that reach new places in the corpus.
    """
    gc.collect()
    gc.freeze()  # what is there before the inputs, all modules, is not looked through again and again
    deadline = time.monotonic() + seconds
    given, piece = given_before(name, seed, log), len(_pieces(name, seed, log))
    after_first = 0
    while given < inputs and time.monotonic() < deadline:
        left_s = deadline - time.monotonic()
        record = fuzz(name, min(PIECE, inputs - given), seed, piece, keep=keep, seconds=left_s)
        after_first = after_first or _resident_bytes()
        record = _with_growth(record, _resident_bytes() - after_first)
        log.add(record)
        yield record
        given, piece = given + record.inputs, piece + 1


def _with_growth(record: FuzzRecord, grown: int) -> FuzzRecord:
    """Return a record with a growth of memory since the first piece, if that is larger than the one of the piece."""
    if grown <= max(record.grown_bytes, MAX_GROWTH_BYTES):
        return record
    violations = (*record.violations, f"memory has grown by {grown / 2**20:.0f} MiB since the first piece")
    return replace(record, grown_bytes=grown, violations=violations)


def given_before(name: str, seed: int, log: Log) -> int:
    """Return how many inputs of a seed a target has had, as a log says."""
    return sum(one.inputs for one in _pieces(name, seed, log))


def _pieces(name: str, seed: int, log: Log) -> list[FuzzRecord]:
    return [one for one in log.records() if isinstance(one, FuzzRecord) and (one.target, one.seed) == (name, seed)]


def fuzz(
    name: str, inputs: int, seed: int, piece: int = 0, *, keep: bool = False, seconds: float = math.inf
) -> FuzzRecord:
    """Give invented inputs to a target, after those of its corpus; failures are kept as files.

    Args:
        name: Of the target.
        inputs: So many, unless the time ends before.
        seed: Decides them, with the number of the piece.
        piece: Of a sequence of calls.
        keep: Save inputs that reach new places in the corpus.
        seconds: Time for them.
    """
    began, found, reached = time.monotonic(), list[str](), list[bytes]()
    given = grown = after_half = 0
    with _opened(name) as target:
        mutator = Mutator([*target.seeds, *corpus(name)], f"{name} {seed} {piece}", SHORT.get(name, MAX_BYTES))
        places = {_read(target, data)[1] for data in mutator.pool}
        for group in _groups(_inputs(mutator, target, inputs), GROUPS.get(name, 1)):
            if given >= inputs // 2 and not after_half:
                after_half = _resident_bytes()
            given += len(group)
            for data, problem, place in _read_group(target, group):
                if problem is not None:
                    found.append(f"{problem} ({_keep(name, data)})")
                elif place not in places and len(mutator.pool) < MAX_POOL:
                    places.add(place)
                    mutator.pool.append(data)
                    reached.append(data)
            if len(found) >= MAX_FAILURES or time.monotonic() > began + seconds:
                break
        grown = max(0, _resident_bytes() - after_half) if after_half else 0
    if grown > MAX_GROWTH_BYTES:
        found.append(f"memory has grown by {grown / 2**20:.0f} MiB")
    if keep:
        _save(name, reached)
    return FuzzRecord(name, seed, given, time.monotonic() - began, grown, tuple(found))


def check_corpus(name: str) -> list[str]:
    """Return the failures among the seeds and the saved inputs of a target."""
    with _opened(name) as target:
        read = [_read(target, data)[0] for data in [*target.seeds, *corpus(name)]]
    return [problem for problem in read if problem is not None]


def corpus(name: str) -> list[bytes]:
    """Return the saved inputs of a target."""
    failed = [path.read_bytes() for path in sorted((CORPUS / name).glob("*")) if path.name != REACHED]
    return failed + _saved(name)


def _saved(name: str) -> list[bytes]:
    path = CORPUS / name / REACHED
    return [b64decode(line) for line in path.read_bytes().split()] if path.exists() else []


def _save(name: str, reached: list[bytes]) -> None:
    """Add short inputs to those that are saved, until they are enough."""
    left = MAX_SAVED - len(_saved(name))
    lines = [b64encode(data) + b"\n" for data in reached if 0 < len(data) <= MAX_SAVED_BYTES][: max(0, left)]
    if lines:
        (CORPUS / name).mkdir(parents=True, exist_ok=True)
        with (CORPUS / name / REACHED).open("ab") as file:
            file.writelines(lines)


@contextmanager
def _opened(name: str) -> Iterator[FuzzTarget]:
    memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix=f"fuzz-{name}-", dir=memory) as folder, TARGETS[name](Path(folder)) as target:
        yield target


def _groups(inputs: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield inputs in groups, the last of which may be smaller."""
    while group := list(islice(inputs, size)):
        yield group


def _read_group(target: FuzzTarget, group: list[bytes]) -> Iterator[tuple[bytes, str | None, Place]]:
    """Yield each input with what `_read` says of it; of a group that holds as a whole, of its first alone."""
    if len(group) > 1:
        whole = SEPARATOR.join(part.replace(SEPARATOR, b"") for part in group)
        problem, place = _read(target, whole)
        if problem is None:
            yield group[0], None, place
            return
        yield whole, problem, place
        return
    yield (group[0], *_read(target, group[0]))


def _inputs(mutator: Mutator, target: FuzzTarget, inputs: int) -> Iterator[bytes]:
    """Yield inputs; every other one with checksums that are right."""
    for number in range(inputs):
        data = mutator.draw()
        yield target.repair(data) if number % 2 else data


def _read(target: FuzzTarget, data: bytes) -> tuple[str | None, Place]:
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
