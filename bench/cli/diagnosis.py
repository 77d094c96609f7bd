"""Findings of `bench doctor`: whether this machine, and the site where one is given, have what a run needs.

One finding a line.
"""

import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench.config.site import HostSite, Site
from bench.errors import SiteError
from bench.plugins.environments import environments
from bench.plugins.registry import KINDS, names
from bench.plugins.site_preflight import endpoints, missing_endpoints, missing_for, site_services
from bench.services.preflight import PendingDownload
from bench.services.python_environments import missing_reason
from bench.system import host_info
from bench.system.orphans import orphans
from bench.telemetry import node_exporter

MIN_DISK, MIN_MEMORY = 5 * 10**9, 4 * 10**9
_LENT_MEMORY = (
    "memory is lent by the host of this virtual machine while it is used: cells of 100 MB/s and more may differ from "
    "run to run by more than their intervals say"
)
MIN_FILES = 4096
"""Files and connections that a server or the harness must be allowed at once."""
MAX_OFFSET = 0.01
"""Seconds by which the clock of a host may differ from ours."""


class Finding(Struct, frozen=True):
    """A thing that was checked, whether it is as it should be, and what to do where it is not."""

    good: bool
    what: str


def findings(site: Site, results: Path, cache: Path, children: Path) -> Iterator[Finding]:
    """Yield everything that is worth knowing before a first run, the cheap checks first.

    Args:
        site: The site; this machine where no file was given.
        results: Folder in which run folders are made; its disk is checked.
        cache: Folder of downloads.
        children: Folder of the records of child processes.
    """
    yield _python()
    facts = host_info.describe("")
    memory = facts["memory_bytes"]
    yield Finding(memory >= MIN_MEMORY, f"{facts['cores']} cores, {memory / 1e9:.0f} GB of memory, {facts['kernel']}")
    if facts["memory_is_lent"]:
        yield Finding(good=True, what=_LENT_MEMORY)
    free = host_info.free_bytes(results)
    yield Finding(free >= MIN_DISK, f"{free / 1e9:.0f} GB of disk are free at {results}")
    yield _files()
    yield Finding(_loopback(), "the loopback interface takes connections")
    plugins = [(kind, name) for kind in ("frameworks", "sources") for name in names(kind)]
    gaps, unreachable = missing_for(plugins, site, cache), missing_endpoints(site)
    for gap in (*gaps, *map(str, unreachable)):
        yield Finding(isinstance(gap, PendingDownload), gap)
    for environment in environments().values():
        reason = missing_reason(environment, cache)
        yield Finding(good=True, what=reason or f"{environment.name} is installed")
    if not gaps and not unreachable:
        yield Finding(good=True, what="Java, packages, jars and endpoints are all there")
    for service, address in endpoints(site):
        if not any((one.section, one.address) == (service.key, address) for one in unreachable):
            yield Finding(good=True, what=f"{service.key} at {address} takes connections")
    yield from (Finding(good=True, what=text) for each in site_services(site) for text in each.service.warnings)
    for name, host in sorted(site.hosts.items()):
        yield from _host(name, host)
    for kind in KINDS:
        yield Finding(bool(names(kind)), f"{kind}: {', '.join(names(kind)) or 'none installed'}")
    left = orphans(children)
    text = (
        f"{len(left)} processes of a killed run are still there; run: bench clean"
        if left
        else "nothing of an earlier run is left"
    )
    yield Finding(not left, text)


def _python() -> Finding:
    return Finding(sys.version_info >= (3, 11), f"Python {sys.version.split()[0]} (3.11 or later is needed)")


def _files() -> Finding:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Finding(files >= MIN_FILES, f"{files} files and connections at once ({MIN_FILES} or more are needed)")


def _host(name: str, host: HostSite) -> Iterator[Finding]:
    """Yield what a host of the site says of its size, its clock, its services and their limits."""
    try:
        exported = node_exporter.query(host.probes)
    except SiteError as problem:
        yield Finding(good=False, what=f"{name}: {problem}")
        return
    cores = {one.labels.get("cpu") for one in exported.samples if one.name == "node_cpu_seconds_total"}
    memory = exported.value("node_memory_MemAvailable_bytes") or 0.0
    yield Finding(memory >= MIN_MEMORY / 4, f"{name}: {len(cores)} cores, {memory / 1e9:.1f} GB of memory are free")
    yield _clock(name, exported)
    running = exported.services()
    for service, version in sorted(host.services.items()):
        yield _service(f"{name}: {service}", version, running.get(service))
        files = exported.value("stream_bench_files", name=service)
        if files is not None:
            yield Finding(files >= MIN_FILES, f"{name}: {service} may have {files:.0f} files and connections at once")


def _clock(name: str, host: node_exporter.HostMetrics) -> Finding:
    if host.offset is None:
        return Finding(good=False, what=f"{name}: its node exporter reports no time; enable its collector `time`")
    off = abs(host.offset)
    follows = "" if host.value("stream_bench_clock_followed") else "; it follows no time server"
    differs = f"{1000 * off:.1f} ms ± {1000 * host.bound:.1f} ms"
    text = f"{name}: its clock differs by {differs} from this machine's{follows}"
    return Finding(off - host.bound <= MAX_OFFSET and host.bound <= MAX_OFFSET, text)


def _service(what: str, wanted: str, found: tuple[str, bool] | None) -> Finding:
    if found is None:
        return Finding(good=False, what=f"{what} is not set up there; run the playbook site.yml")
    version, runs = found
    if not runs:
        return Finding(good=False, what=f"{what} does not run; run the playbook restart.yml")
    if version != wanted:
        return Finding(good=False, what=f"{what} is {version}, the site file says {wanted}")
    return Finding(good=True, what=f"{what} {version} runs")


def _loopback() -> bool:
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            socket.create_connection(server.getsockname(), timeout=2).close()
        except OSError:
            return False
    return True
