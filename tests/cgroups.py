"""Cgroups of the tests' own (root): with a limit of memory, or a share of the CPU time. No other one is touched."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 20_000
"""In which a cgroup gets its share of the CPU time: short, so that it is slow rather than absent."""
_EMPTY_TIMEOUT_S = 10.0


@contextlib.contextmanager
def memory_cgroup(max_bytes: int) -> Iterator[Path]:
    """Make a cgroup in which the kernel kills a process where memory runs out, for as long as the block lasts.

    Yields:
        Its folder, for `join`; children of what is in it are in it from their start.

    Raises:
        OSError: There can be none here.
    """
    with _make_cgroup("memory") as (folder, version):
        _write(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"), max_bytes)
        swap, most = ("memory.swap.max", 0) if version == 2 else ("memory.memsw.limit_in_bytes", max_bytes)
        if (folder / swap).exists():
            _write(folder / swap, most)
        yield folder


@contextlib.contextmanager
def cpu_cgroup(share: float) -> Iterator[Path]:
    """Make a cgroup whose processes together get a share of one core, for as long as the block lasts.

    Raises:
        OSError: There can be none here.
    """
    quota_us = int(share * _PERIOD_US)
    with _make_cgroup("cpu") as (folder, version):
        if version == 2:
            _write(folder / "cpu.max", f"{quota_us} {_PERIOD_US}")
        else:
            _write(folder / "cpu.cfs_period_us", _PERIOD_US)
            _write(folder / "cpu.cfs_quota_us", quota_us)
        yield folder


def join(cgroup: Path, pid: int) -> None:
    """Let a process be in a cgroup; OSError if it has ended."""
    _write(cgroup / "cgroup.procs", pid)


def can_limit_memory() -> bool:
    """Return whether this process can make a cgroup with a limit of memory."""
    try:
        with memory_cgroup(2**30):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def _make_cgroup(controller: str) -> Iterator[tuple[Path, int]]:
    """Make an empty cgroup, of version 2 where that has the controller, and remove it when its processes have ended."""
    listed = _ROOT / "cgroup.subtree_control"
    version = 2 if listed.exists() and controller in listed.read_text(encoding="ascii").split() else 1
    folder = (_ROOT if version == 2 else _ROOT / controller) / f"stream-bench-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    try:
        yield folder, version
    finally:
        deadline = time.monotonic() + _EMPTY_TIMEOUT_S
        while folder.exists() and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # its last processes are ending
                folder.rmdir()
            time.sleep(0.01)


def _write(file: Path, value: object) -> None:
    file.write_text(str(value), encoding="ascii")
