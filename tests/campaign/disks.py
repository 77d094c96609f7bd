"""Disks of a given size for a campaign (root): a tmpfs that becomes full, larger or read-only, and is unmounted."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

_FILLER = ".filler"


@contextlib.contextmanager
def mounted(folder: Path, size_bytes: int) -> Iterator[None]:
    """Mount a tmpfs of a size at a folder, which is made, for as long as the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=0755", "campaign", str(folder))
    try:
        yield
    finally:
        _run("umount", "--lazy", str(folder))


def remount(folder: Path, options: str) -> bool:
    """Change a mounted tmpfs: "size=1g", "ro", "rw"; return False while open files do not allow it."""
    done = subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=False, capture_output=True)
    return done.returncode == 0


def fill(folder: Path) -> None:
    """Write a file until the disk is full."""
    with (folder / _FILLER).open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(2**20)):
            pass


def empty(folder: Path) -> None:
    """Remove what `fill` wrote."""
    (folder / _FILLER).unlink(missing_ok=True)


def can_mount() -> bool:
    """Return whether this process may mount file systems, as far as that is known without a try."""
    return os.geteuid() == 0


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
