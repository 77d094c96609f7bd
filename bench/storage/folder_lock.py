"""The lock of a run folder: one harness writes to it at a time, and others see that it does."""

import fcntl
from pathlib import Path
from typing import IO


def lock_run_folder(folder: Path) -> IO[bytes] | None:
    """Lock a run's folder until the returned file is closed or this process ends; None if another process has it."""
    file = (folder / ".lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def is_running(folder: Path) -> bool:
    """Return True if a harness has locked the run folder; read from proc(5) /proc/locks, so the lock is never taken."""
    try:
        inode = (folder / ".lock").stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any(
        words[1] == "FLOCK" and words[5].rsplit(":", 1)[-1] == str(inode)
        for line in locks
        if len(words := line.split()) > 5
    )
