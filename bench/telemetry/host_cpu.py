"""CPU time that hypervisors stole from the hosts of a site, between two moments."""

from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct

from bench.config.site import Site
from bench.errors import SiteError
from bench.telemetry.node_exporter import HostMetrics, read_metrics


class HostCpu(Struct, frozen=True):
    """The CPU counters of one host in seconds since it started; `at` is its own clock."""

    at: float
    steal: float
    cores: int


class HostCpuMeter:
    """Reads the counters of a site's hosts at construction and at `stop`; never waits for a host before `usage`."""

    def __init__(self, site: Site) -> None:
        self._addresses = {} if site.shared_machine else {name: host.probes for name, host in site.hosts.items()}
        self._pool = ThreadPoolExecutor(max(1, len(self._addresses)))
        self._before, self._after = self._read(), dict[str, Future[HostCpu | None]]()

    def wait(self) -> None:
        """Wait until the first reading is done; it takes no longer than an exporter's timeout."""
        for reading in self._before.values():
            reading.result()

    def stop(self) -> None:
        """Begin the second reading."""
        self._after = self._read()

    def usage(self) -> dict[str, dict[str, float]]:
        """Return (steal, available) CPU seconds by host; a host that did not answer twice is missing."""
        used: dict[str, dict[str, float]] = {}
        for name, after in self._after.items():
            begin, end = self._before[name].result(), after.result()
            if begin is not None and end is not None and end.at > begin.at:
                steal = max(0.0, end.steal - begin.steal)
                used[name] = {"steal": steal, "available": (end.at - begin.at) * end.cores}
        self._pool.shutdown()
        return used

    def _read(self) -> "dict[str, Future[HostCpu | None]]":
        return {name: self._pool.submit(_read_host, address) for name, address in self._addresses.items()}


def _read_host(address: str) -> HostCpu | None:
    """Return the counters of the host at an exporter's address; None if it does not answer or serve them."""
    try:
        return host_cpu(read_metrics(address))
    except SiteError:
        return None


def host_cpu(metrics: HostMetrics) -> HostCpu | None:
    """Return the CPU counters among a host's metrics; None if they are not complete."""
    cpu = [sample for sample in metrics.samples if sample.name == "node_cpu_seconds_total"]
    cores = {sample.labels.get("cpu") for sample in cpu}
    stolen = [sample.value for sample in cpu if sample.labels.get("mode") == "steal"]
    at = metrics.value("node_time_seconds")
    return None if at is None or not stolen else HostCpu(at, sum(stolen), len(cores))
