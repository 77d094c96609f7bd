"""Whether this machine, and the site where one is given, have what a run needs; one finding a line."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench import machine
from bench.process import leftovers
from bench.rooms import KINDS, names
from bench.services import needs
from bench.site import Site

LEAST_DISK, LEAST_MEMORY = 5 * 10**9, 4 * 10**9


class Finding(Struct, frozen=True):
    """One thing that was looked at, whether it is as it should be, and what to do where it is not."""

    good: bool
    what: str


def findings(site: Site, results: Path, cache: Path, registry: Path) -> Iterator[Finding]:
    """Everything that is worth knowing before a first run, the cheap things first."""
    yield _python()
    facts = machine.describe("")
    memory = facts["memory_bytes"]
    yield Finding(memory >= LEAST_MEMORY, f"{facts['cores']} cores, {memory / 1e9:.0f} GB of memory, {facts['kernel']}")
    free = machine.free_bytes(results)
    yield Finding(free >= LEAST_DISK, f"{free / 1e9:.0f} GB of disk are free at {results}")
    yield Finding(_loopback(), "the loopback interface takes connections")
    wanted = set(needs.PACKAGES) | set(needs.JARS)
    gaps = needs.missing(wanted, site, cache)
    for gap in gaps:
        yield Finding("downloaded first" in gap, gap)
    if not gaps:
        yield Finding(good=True, what="Java, packages, jars and endpoints are all there")
    for kind in KINDS:
        yield Finding(bool(names(kind)), f"{kind}: {', '.join(names(kind)) or 'none installed'}")
    left = leftovers(registry)
    said = f"{len(left)} children of a killed run are left; run: bench clean" if left else "nothing of an earlier run is left"
    yield Finding(not left, said)


def _python() -> Finding:
    return Finding(sys.version_info >= (3, 11), f"Python {sys.version.split()[0]} (3.11 or later is needed)")


def _loopback() -> bool:
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            socket.create_connection(server.getsockname(), timeout=2).close()
        except OSError:
            return False
    return True
