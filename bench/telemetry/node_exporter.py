"""What a host of the site says of itself: the figures that a node exporter of Prometheus serves, and how far its clock is off."""

import http.client
import logging
import math
import re
import time
import urllib.error
import urllib.request

from msgspec import Struct
from msgspec.structs import replace

from bench.config.site import Site
from bench.errors import SiteError
from bench.model.measurement import ClockOffset

logger = logging.getLogger(__name__)

TIMEOUT_S = 3.0
"""Seconds that an exporter has for its answer."""
ASKED = 5
"""Times that a host is asked for the time: the quickest answer says most."""
MAX_ANSWER = 2**22
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # hosts of a site are no business of a proxy's
_LINE = re.compile(r"^([a-zA-Z_]\w*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"\\]*)"')


class Figure(Struct, frozen=True):
    """One number with its name and labels."""

    name: str
    labels: dict[str, str]
    value: float


class Host(Struct, frozen=True):
    """What a host serves. `offset` is its clock minus ours in seconds, known up to `bound`; None where it says no time."""

    figures: tuple[Figure, ...]
    offset: float | None
    bound: float

    def value(self, name: str, /, **labels: str) -> float | None:
        """The first number of that name with these labels among its own."""
        found = (one.value for one in self.figures if one.name == name and labels.items() <= one.labels.items())
        return next(found, None)

    def services(self) -> dict[str, tuple[str, bool]]:
        """By name: its version, and whether it runs."""
        told = [one for one in self.figures if one.name == "stream_bench_service"]
        return {one.labels.get("name", ""): (one.labels.get("version", ""), one.value == 1) for one in told}


def ask(address: str) -> Host:
    """What the exporter at host:port says; SiteError when it says nothing that can be read."""
    answers = [_answer(address) for _ in range(ASKED)]
    bound, offset, _ = min(answers, key=lambda answer: answer[0])
    return Host(answers[-1][2], offset, bound)


def apart(site: Site) -> ClockOffset | None:
    """How far the clocks of a site's hosts are apart; None where there are no hosts, or one does not say what time it has."""
    found: list[ClockOffset] = []
    for name, host in sorted(site.hosts.items()):
        try:
            told = ask(host.probes)
        except SiteError as problem:
            logger.warning("the clock of %s is not known: %s", name, problem)
            return None
        if told.offset is None:
            logger.warning("the clock of %s is not known: its exporter says no time", name)
            return None
        found.append(ClockOffset(name, told.offset, told.bound, abs(told.offset) + told.bound))
    found.sort(key=lambda one: -one.max_latency_error)
    both = sum(one.max_latency_error for one in found[: 1 if site.load is None else 2])
    return replace(found[0], max_latency_error=both) if found else None


def figures_in(text: str) -> tuple[Figure, ...]:
    """The numbers of an exposition (Prometheus' text format, version 0.0.4); what cannot be read is left out."""
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            found.append(Figure(match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])))
        except ValueError:
            continue
    return tuple(found)


def _answer(address: str) -> tuple[float, float | None, tuple[Figure, ...]]:
    """(half of how long it took, offset of its clock in the middle of that, figures)."""
    began, clock = time.monotonic(), time.time()
    try:
        with _DIRECT.open(f"http://{address}/metrics", timeout=TIMEOUT_S) as answer:
            text = _read(answer, began + TIMEOUT_S).decode("utf-8", errors="replace")
    except (OSError, urllib.error.URLError, http.client.HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or str(problem).strip() or type(problem).__name__
        raise SiteError(f"no figures from {address}: {reason}") from problem
    half = (time.monotonic() - began) / 2
    figures = figures_in(text)
    told = next((one.value for one in figures if one.name == "node_time_seconds" and math.isfinite(one.value)), None)
    return half, None if told is None else told - (clock + half), figures


def _read(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """The whole answer; TimeoutError where it does not come in time, ValueError where it is too large."""
    parts: list[bytes] = []
    while part := answer.read1(2**16):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError(f"its answer took longer than {TIMEOUT_S:g} s")
        if sum(map(len, parts)) > MAX_ANSWER:
            raise ValueError("its answer is too large")
    said, told = b"".join(parts), answer.headers.get("Content-Length", "")
    if told.isdigit() and len(said) < int(told):
        raise ValueError("its answer ended too early")
    return said
