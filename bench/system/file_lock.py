"""Locks between processes, held on a file."""

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.errors import ServiceError

_POLL_INTERVAL_S = 0.1


@contextlib.contextmanager
def hold_lock(path: Path, timeout_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file during the block; the kernel releases it when the process ends.

    Args:
        path: the file; it is made if it does not exist.
        timeout_s: for another process to release it.
        waiting: called once if another process holds it.

    Raises:
        ServiceError: it was still held after the timeout.
    """
    deadline, noted = time.monotonic() + timeout_s, False
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    held = f"{path} has been locked by another process for {timeout_s:g} s"
                    raise ServiceError(f"{held}; wait for its download, or end that process") from error
            if not noted:
                waiting()
            noted = True
            time.sleep(_POLL_INTERVAL_S)
        yield
