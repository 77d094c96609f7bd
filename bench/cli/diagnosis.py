"""Whether this machine, and the site where one is given, have what a run needs; one finding a line."""

import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from bench.config.site import HostSite, Site
from bench.errors import SiteError
from bench.plugins.registry import KINDS, names
from bench.services import preflight
from bench.system import host_info
from bench.system.supervisor import orphans
from bench.telemetry import node_exporter

MIN_DISK, MIN_MEMORY = 5 * 10**9, 4 * 10**9
MIN_FILES = 4096
"""Files and connections that a server or the harness must be allowed at once."""
MAX_OFFSET = 0.01
"""Seconds by which the clock of a host may differ from ours."""


class Finding(Struct, frozen=True):
    """One thing that was looked at, whether it is as it should be, and what to do where it is not."""

    good: bool
    what: str


def findings(site: Site, results: Path, cache: Path, registry: Path) -> Iterator[Finding]:
    """Everything that is worth knowing before a first run, the cheap things first."""
    yield _python()
    facts = host_info.describe("")
    memory = facts["memory_bytes"]
    yield Finding(memory >= MIN_MEMORY, f"{facts['cores']} cores, {memory / 1e9:.0f} GB of memory, {facts['kernel']}")
    free = host_info.free_bytes(results)
    yield Finding(free >= MIN_DISK, f"{free / 1e9:.0f} GB of disk are free at {results}")
    yield _files()
    yield Finding(_loopback(), "the loopback interface takes connections")
    wanted = set(preflight.PACKAGES) | set(preflight.JARS)
    gaps = preflight.missing(wanted, site, cache)
    for gap in gaps:
        yield Finding("downloaded first" in gap, gap)
    if not gaps:
        yield Finding(good=True, what="Java, packages, jars and endpoints are all there")
    for kind, address in preflight.endpoints(site):
        if not any(gap.startswith(f"{kind} at {address}:") for gap in gaps):
            yield Finding(good=True, what=f"{kind} at {address} takes connections")
    yield from (Finding(good=True, what=said) for said in _open_tokens(site))
    for name, host in sorted(site.hosts.items()):
        yield from _host(name, host)
    for kind in KINDS:
        yield Finding(bool(names(kind)), f"{kind}: {', '.join(names(kind)) or 'none installed'}")
    left = orphans(registry)
    said = (
        f"{len(left)} children of a killed run are left; run: bench clean"
        if left
        else "nothing of an earlier run is left"
    )
    yield Finding(not left, said)


def _open_tokens(site: Site) -> Iterator[str]:
    """Where a token goes over a connection that is not encrypted: it works, and whoever listens there can use it as well."""
    said = "its token goes over an unencrypted connection, where others can read it"
    if site.pulsar is not None and site.pulsar.token_file is not None:
        urls = (site.pulsar.service_url, site.pulsar.admin_url)
        yield from (f"pulsar at {url}: {said}" for url in urls if url.startswith(("pulsar://", "http://")))
    told = site.harmonicio
    if told is not None and told.tls is None and (told.token_file or told.connector_token_file):
        yield f"harmonicio at {told.master}: {said}"


def _python() -> Finding:
    return Finding(sys.version_info >= (3, 11), f"Python {sys.version.split()[0]} (3.11 or later is needed)")


def _files() -> Finding:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Finding(files >= MIN_FILES, f"{files} files and connections at once ({MIN_FILES} or more are needed)")


def _host(name: str, host: HostSite) -> Iterator[Finding]:
    """What a host of the site says of its size, its clock, its services and their limits."""
    try:
        told = node_exporter.query(host.probes)
    except SiteError as problem:
        yield Finding(good=False, what=f"{name}: {problem}")
        return
    cores = {one.labels.get("cpu") for one in told.samples if one.name == "node_cpu_seconds_total"}
    memory = told.value("node_memory_MemAvailable_bytes") or 0.0
    yield Finding(memory >= MIN_MEMORY / 4, f"{name}: {len(cores)} cores, {memory / 1e9:.1f} GB of memory are free")
    yield _clock(name, told)
    running = told.services()
    for service, version in sorted(host.services.items()):
        yield _service(f"{name}: {service}", version, running.get(service))
        files = told.value("stream_bench_files", name=service)
        if files is not None:
            yield Finding(files >= MIN_FILES, f"{name}: {service} may have {files:.0f} files and connections at once")


def _clock(name: str, told: node_exporter.HostMetrics) -> Finding:
    if told.offset is None:
        return Finding(good=False, what=f"{name}: its exporter says no time; is its collector 'time' off?")
    off = abs(told.offset)
    follows = "" if told.value("stream_bench_clock_followed") else "; it follows no time server"
    said = f"{name}: its clock is {1000 * off:.1f} ms off ours, known to {1000 * told.bound:.1f} ms{follows}"
    return Finding(off - told.bound <= MAX_OFFSET and told.bound <= MAX_OFFSET, said)


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
