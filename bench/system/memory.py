"""Free memory of this machine, used once before anything is measured.

The host of a virtual machine may lend memory only when it is used, and take it back when it is free. A page that the
host has to lend takes several times as long as one that it has lent before: without this step the first cells of
large messages pay for it, and later ones do not. See docs/decisions/0210-memory-is-used-once-before.md.
"""

import math
import mmap
import sys
from pathlib import Path

import psutil

from bench.system import host_info
from bench.system.side_by_side import run_side_by_side
from bench.system.supervisor import run_tool

MAX_BYTES, FREE_SHARE = 8 * 2**30, 0.5
"""At most so much is used, and at most this share of what is free: others may need the rest."""
TIMEOUT_S = 60
_PART_BYTES = 2**28
_POPULATED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE


def use_free_memory() -> None:
    """Use much of the free memory once, and leave it; takes 2 s for 8 GiB on two cores if it was lent before.

    Child processes do it, one for each core, which end before this returns.
    """
    cores = host_info.cores()
    part = int(max(0.0, min(MAX_BYTES, FREE_SHARE * min(psutil.virtual_memory().free, left_in_groups())))) // cores
    command = [sys.executable, "-m", "bench.system.memory", str(part)]
    run_side_by_side({f"using memory {core}": lambda: run_tool(command, timeout_s=TIMEOUT_S) for core in range(cores)})


def main() -> None:
    """Use as many bytes of memory as the argument says."""
    count = int(sys.argv[1])
    used = [mmap.mmap(-1, _PART_BYTES, flags=_POPULATED) for _ in range(count // _PART_BYTES)]
    for each in used:
        each.close()


def left_in_groups(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Return the bytes that the control groups of this process, such as a container's, still allow; inf for any.

    Source: cgroups(7); version 2, and version 1 where a container sees its own group as the root.

    Args:
        root: Where control groups are mounted.
        own: The file that names those of this process.
    """
    lines = own.read_text(encoding="ascii").splitlines() if own.exists() else []
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    group = root / path.lstrip("/")
    folders = [folder for folder in (group, *group.parents) if folder == root or root in folder.parents]
    files = [(folder / "memory.max", folder / "memory.current") for folder in folders]
    files += [(limit, limit.with_name("memory.usage_in_bytes")) for limit in root.glob("*/memory.limit_in_bytes")]
    left = math.inf
    for limit, used in files:
        if limit.exists() and used.exists() and (text := limit.read_text(encoding="ascii").strip()) != "max":
            left = min(left, int(text) - int(used.read_text(encoding="ascii")))
    return left


if __name__ == "__main__":
    main()
