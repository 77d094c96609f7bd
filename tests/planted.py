"""Limits that are planted in a run: a process that gets a share of a core, and a slow folder of checkpoints."""

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from bench.system.orphans import records
from tests.cgroups import cpu_cgroup, join

_POLL_INTERVAL_S = 0.05
_SLOW_RENAME = Path(__file__).with_name("slow_rename.c")


@contextlib.contextmanager
def throttle(folder: Path, name: str, share: float, after: float = 0.0) -> Iterator[Mapping[str, str]]:
    """Give a child of each run in the block a share of a core, by a cgroup (root).

    Args:
        folder: For the records of these runs, so that no other run is throttled.
        name: Of the child, as the harness records it, such as "kafka" or "python-1".
        share: Of one core.
        after: CPU seconds that it may use before: a broker would start for minutes.

    Yields:
        The variables that the runs need.
    """
    ended, home = threading.Event(), folder.absolute() / "state"
    registry = home / "stream-bench" / "children"
    with cpu_cgroup(share) as cgroup:

        def watch() -> None:
            while not ended.wait(_POLL_INTERVAL_S):
                for record in records(registry):
                    for pid in record.running() if record.name == name else ():
                        with contextlib.suppress(OSError, psutil.Error):  # it has ended
                            if sum(psutil.Process(pid).cpu_times()[:2]) >= after:
                                join(cgroup, pid)

        watcher = threading.Thread(target=watch, name="throttle")
        watcher.start()
        try:
            yield {"XDG_STATE_HOME": str(home)}
        finally:
            ended.set()
            watcher.join()


@contextlib.contextmanager
def slow_checkpoints(folder: Path, milliseconds: int) -> Iterator[Mapping[str, str]]:
    """Delay each rename of a file of a checkpoint, which is how Spark writes one (needs a C compiler).

    Args:
        folder: For the library that does it.
        milliseconds: Of each delay.

    Yields:
        The variables that the runs need.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library = folder.absolute() / "slow_rename.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SLOW_RENAME), "-ldl"], check=True)
    yield {"LD_PRELOAD": str(library), "SLOW_RENAME_MS": str(milliseconds)}
