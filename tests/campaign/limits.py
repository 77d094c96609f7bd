"""Limits of a running process, which are lifted again: file descriptors and memory."""

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.victims import Target

_PAGE_BYTES = resource.getpagesize()
MAX_MORE_DESCRIPTORS, MAX_MORE_BYTES = 4, 8 * 2**20
"""Beyond what the process has: for a connection or two, or some messages."""


@contextlib.contextmanager
def limited(target: Target, kind: str, chance: float) -> Iterator[None]:
    """Let a process get little more than it has, for as long as the block lasts.

    Args:
        target: The process; does nothing if it has ended.
        kind: "few descriptors" or "little memory".
        chance: From 0 to 1; chooses how little.
    """
    number = resource.RLIMIT_NOFILE if kind == "few descriptors" else resource.RLIMIT_AS
    try:
        limit = _used(target.pid, kind) + int(chance * _more(kind))
        before = resource.prlimit(target.pid, number)
        resource.prlimit(target.pid, number, (limit, before[1]))
    except (OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it has ended
            if target.is_running():
                resource.prlimit(target.pid, number, before)


def _used(pid: int, kind: str) -> int:
    """Return how many descriptors, or bytes of address space, a process has."""
    if kind == "few descriptors":
        return 1 + max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * _PAGE_BYTES


def _more(kind: str) -> int:
    return MAX_MORE_DESCRIPTORS if kind == "few descriptors" else MAX_MORE_BYTES
