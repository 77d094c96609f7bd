"""Resource usage of a site's hosts between two moments, from the node exporters that run there."""

from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct

from bench.config.site import Site
from bench.errors import SiteError
from bench.telemetry.node_exporter import HostMetrics, read_metrics

IDLE_MODES = ("idle", "iowait", "steal", "guest", "guest_nice")
"""Modes of a CPU that are not work of the host; time of guests is part of `user` already."""
VOLUMES = {
    "received_bytes": "node_network_receive_bytes_total",
    "sent_bytes": "node_network_transmit_bytes_total",
    "read_bytes": "node_disk_read_bytes_total",
    "written_bytes": "node_disk_written_bytes_total",
}
"""Counters of devices: our name, and the exporter's."""
VIRTUAL_DEVICES = ("lo", "veth", "docker", "br-", "virbr", "dm-", "md", "loop", "zram")
"""How the names of devices begin whose bytes cross another device, too, or none."""
MIN_COVERED_SHARE = 2 / 3
"""The hosts read the counters of their JVMs every 15 s as installed. Garbage collection between two of these readings
counts if this share of the time between them lies in the window, and if they cover this share of the window."""


class HostCounters(Struct, frozen=True):
    """The counters of one host since it started.

    `at` is its own clock; `steal` and `busy` are CPU seconds of all cores; `volumes` are bytes by name, as far as the
    exporter serves them; `memory` is in use at that moment, in bytes. `gc` are seconds that each JVM of the site's
    services has paused for garbage collection, by service and pid, until `collected`.
    """

    at: float
    cores: int
    steal: float
    busy: float
    volumes: dict[str, float]
    memory: float | None
    gc: dict[str, float] = {}
    collected: float = 0.0


class HostMeter:
    """Reads the counters of a site's hosts at construction and at `stop`; never waits for a host before `usage`."""

    def __init__(self, site: Site) -> None:
        self._addresses = {} if site.shared_machine else {name: host.probes for name, host in site.hosts.items()}
        self._pool = ThreadPoolExecutor(max(1, len(self._addresses)))
        self._before, self._after = self._read(), dict[str, Future[HostCounters | None]]()

    def stop(self) -> None:
        """Begin the second reading."""
        self._after = self._read()

    def usage(self) -> dict[str, dict[str, float]]:
        """Return the usage by host, as `Measurement.hosts` has it; a host that did not answer twice is missing."""
        used: dict[str, dict[str, float]] = {}
        for name, after in self._after.items():
            begin, end = self._before[name].result(), after.result()
            if begin is not None and end is not None and end.at > begin.at:
                used[name] = usage_between(begin, end)
        self._pool.shutdown()
        return used

    def _read(self) -> "dict[str, Future[HostCounters | None]]":
        return {name: self._pool.submit(_read_host, address) for name, address in self._addresses.items()}


def usage_between(begin: HostCounters, end: HostCounters) -> dict[str, float]:
    """Return what a host used between two readings; a counter that went back, as after a restart, counts as 0."""
    used = {
        "seconds": end.at - begin.at,
        "available": (end.at - begin.at) * end.cores,
        "steal": max(0.0, end.steal - begin.steal),
        "busy": max(0.0, end.busy - begin.busy),
    }
    used |= {name: max(0.0, end.volumes[name] - start) for name, start in begin.volumes.items() if name in end.volumes}
    gc = _gc_seconds(begin, end)
    used |= {} if gc is None else {"gc_seconds": gc}
    return used if end.memory is None else {**used, "memory_bytes": end.memory}


def _gc_seconds(begin: HostCounters, end: HostCounters) -> float | None:
    """Return the pauses of all JVMs in the window, in the proportion of the readings that cover it.

    None if none do, and where a JVM ended: its last pauses are not known.
    """
    window, between, covered = end.at - begin.at, end.collected - begin.collected, end.collected - begin.at
    if not end.gc or not begin.collected or between <= 0 or covered < MIN_COVERED_SHARE * max(between, window):
        return None
    if begin.gc.keys() - end.gc.keys():
        return None
    paused = sum(max(0.0, total - begin.gc.get(jvm, 0.0)) for jvm, total in end.gc.items())
    return paused * window / between


def _read_host(address: str) -> HostCounters | None:
    """Return the counters of the host at an exporter's address; None if it does not answer or serve them."""
    try:
        return host_counters(read_metrics(address))
    except SiteError:
        return None


def host_counters(metrics: HostMetrics) -> HostCounters | None:
    """Return the counters among a host's metrics; None if those of its clock and its CPU are not complete."""
    cpu = [sample for sample in metrics.samples if sample.name == "node_cpu_seconds_total"]
    stolen = [sample.value for sample in cpu if sample.labels.get("mode") == "steal"]
    at = metrics.value("node_time_seconds")
    if at is None or not stolen:
        return None
    volumes = {name: total for name, served in VOLUMES.items() if (total := _total(metrics, served)) is not None}
    memory, free = metrics.value("node_memory_MemTotal_bytes"), metrics.value("node_memory_MemAvailable_bytes")
    return HostCounters(
        at=at,
        cores=len({sample.labels.get("cpu") for sample in cpu}),
        steal=sum(stolen),
        busy=sum(sample.value for sample in cpu if sample.labels.get("mode") not in IDLE_MODES),
        volumes=volumes,
        memory=None if memory is None or free is None else memory - free,
        gc={
            f"{sample.labels.get('name')} {sample.labels.get('pid')}": sample.value
            for sample in metrics.samples
            if sample.name == "stream_bench_gc_seconds_total"
        },
        collected=metrics.value("stream_bench_collected_seconds") or 0.0,
    )


def _total(metrics: HostMetrics, name: str) -> float | None:
    """Return the sum of a counter over the real devices; None where there is none."""
    of_devices = [
        sample.value
        for sample in metrics.samples
        if sample.name == name and not sample.labels.get("device", "").startswith(VIRTUAL_DEVICES)
    ]
    return sum(of_devices) if of_devices else None
