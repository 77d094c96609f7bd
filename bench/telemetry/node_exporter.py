"""Metrics of the hosts of a site, as Prometheus' node exporter serves them, and the offsets of their clocks."""

import http.client
import logging
import math
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from bench.config.site import Site
from bench.errors import SiteError
from bench.model.measurement import ClockOffset

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

logger = logging.getLogger(__name__)

TIMEOUT_S = 3.0
"""Seconds that an exporter has for its reply."""
CLOCK_READINGS = 5
"""Requests to each host: the quickest reply gives the best bound of its clock's offset."""
MAX_REPLY_BYTES = 2**22
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # hosts of a site are not behind a proxy


class HostMetrics(Struct, frozen=True):
    """The metrics of one host.

    `offset` is its clock minus ours in seconds, accurate to `bound`; None if the host does not serve its time.
    """

    samples: "tuple[Sample, ...]"
    offset: float | None
    bound: float

    def value(self, name: str, /, **labels: str) -> float | None:
        """Return the value of the first sample with that name and, among others, these labels; None without one."""
        values = (one.value for one in self.samples if one.name == name and labels.items() <= one.labels.items())
        return next(values, None)

    def services(self) -> dict[str, tuple[str, bool]]:
        """Return (version, running) of each service by name."""
        services = [one for one in self.samples if one.name == "stream_bench_service"]
        return {one.labels.get("name", ""): (one.labels.get("version", ""), one.value == 1) for one in services}


def query(address: str) -> HostMetrics:
    """Return the metrics of the exporter at an address (host:port).

    Raises:
        SiteError: It does not answer in time, or not with a complete HTTP reply of at most MAX_REPLY_BYTES.
    """
    return metrics_of(_fetch(address) for _ in range(CLOCK_READINGS))


def metrics_of(replies: Iterable[tuple[float, float, str]]) -> HostMetrics:
    """Return the metrics in the quickest of several replies: a slow one bounds the offset of the clock less.

    Args:
        replies: (half the seconds that the reply took, our wall clock in the middle of them, the reply).
    """
    half, middle, text = min(replies, key=lambda reply: reply[0])
    metrics = HostMetrics(parse_samples(text), None, half)
    theirs = metrics.value("node_time_seconds")
    return metrics if theirs is None or not math.isfinite(theirs) else replace(metrics, offset=theirs - middle)


def read_metrics(address: str) -> HostMetrics:
    """Return the metrics of the exporter at an address (host:port) by one request, without the offset of its clock.

    Raises:
        SiteError: As `query` does.
    """
    half, _, text = _fetch(address)
    return HostMetrics(parse_samples(text), None, half)


def measure_clock_offset(site: Site) -> ClockOffset | None:
    """Return the largest clock offset among the hosts of a site; None without hosts, or if one of them is unknown.

    With load hosts, `max_latency_error` is the sum of the two largest: both ends of a latency may then be stamped by
    other clocks.
    """
    offsets: list[ClockOffset] = []
    for name, host in sorted(site.hosts.items()):
        try:
            metrics = query(host.probes)
        except SiteError as problem:
            logger.warning("the offset of the clock of %s is unknown: %s", name, problem)
            return None
        if metrics.offset is None:
            logger.warning("the offset of the clock of %s is unknown: its exporter does not serve the time", name)
            return None
        offsets.append(ClockOffset(name, metrics.offset, metrics.bound, abs(metrics.offset) + metrics.bound))
    offsets.sort(key=lambda one: -one.max_latency_error)
    most = sum(one.max_latency_error for one in offsets[: 1 if site.load is None else 2])
    return replace(offsets[0], max_latency_error=most) if offsets else None


def parse_samples(text: str) -> "tuple[Sample, ...]":
    """Return the samples of an exposition (Prometheus' text format, version 0.0.4); skip broken lines."""
    from prometheus_client.parser import text_string_to_metric_families  # 80 ms that only a site with hosts pays

    samples: list[Sample] = []
    for line in text.splitlines():
        try:  # line by line: the parser gives up a whole exposition at its first broken line
            samples += (sample for family in text_string_to_metric_families(line) for sample in family.samples)
        except ValueError:
            continue
    return tuple(samples)


def _fetch(address: str) -> tuple[float, float, str]:
    """Return (half the seconds that the reply took, our wall clock in the middle of them, the reply)."""
    began, clock = time.monotonic(), time.time()
    try:
        with _DIRECT.open(f"http://{address}/metrics", timeout=TIMEOUT_S) as reply:
            text = _read(reply, began + TIMEOUT_S).decode("utf-8", errors="replace")
    except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or str(problem).strip() or type(problem).__name__
        raise SiteError(f"no metrics from {address}: {reason}") from problem
    half = (time.monotonic() - began) / 2
    return half, clock + half, text


def _read(reply: http.client.HTTPResponse, deadline: float) -> bytes:
    """Return the whole body; raise TimeoutError after the deadline, ValueError if it is too large or cut off."""
    body = b""
    while part := reply.read1(2**16):
        body += part
        if time.monotonic() > deadline:
            raise TimeoutError(f"its reply took longer than {TIMEOUT_S:g} s")
        if len(body) > MAX_REPLY_BYTES:
            raise ValueError("its reply is too large")
    expected = reply.headers.get("Content-Length", "")
    if expected.isdigit() and len(body) < int(expected):
        raise ValueError("its reply ended too early")
    return body
