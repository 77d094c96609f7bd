"""Limits of a running process, which are lifted again: file descriptors and memory; and a cgroup with little memory."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.victims import Target

_PAGE_BYTES = resource.getpagesize()
_MEMORY_CGROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
)
"""Where version 2 and version 1 have them, with the file of the limit; the first one only if it has the controller."""
_EMPTY_TIMEOUT_S = 10.0
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


@contextlib.contextmanager
def memory_cgroup(max_bytes: int) -> Iterator[Path]:
    """Make a cgroup, in which the kernel kills a process where memory runs out, for as long as the block lasts.

    Yields:
        Its folder: a process joins it with its pid in cgroup.procs, and its children are in it from their start.

    Raises:
        OSError: There can be none here.
    """
    root, limit = _MEMORY_CGROUPS[0] if _has_memory(_MEMORY_CGROUPS[0][0]) else _MEMORY_CGROUPS[1]
    folder = root / f"campaign-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    try:
        (folder / limit).write_text(str(max_bytes), encoding="ascii")
        yield folder
    finally:
        deadline = time.monotonic() + _EMPTY_TIMEOUT_S
        while folder.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # its last processes are ending
                folder.rmdir()


def can_limit_memory() -> bool:
    """Return whether this process can make a cgroup with a limit of memory."""
    try:
        with memory_cgroup(2**30):
            return True
    except OSError:
        return False


def _has_memory(root: Path) -> bool:
    controllers = root / "cgroup.subtree_control"
    return controllers.exists() and "memory" in controllers.read_text(encoding="ascii").split()


def _used(pid: int, kind: str) -> int:
    """Return how many descriptors, or bytes of address space, a process has."""
    if kind == "few descriptors":
        return 1 + max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir())
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * _PAGE_BYTES


def _more(kind: str) -> int:
    return MAX_MORE_DESCRIPTORS if kind == "few descriptors" else MAX_MORE_BYTES
