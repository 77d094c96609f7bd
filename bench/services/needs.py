"""What the embedded services and the site's endpoints need, and what of it is missing here."""

import os
import socket
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from bench.errors import HarnessError, SiteError
from bench.services.jars import cached
from bench.services.java import java
from bench.site import Site, host_and_port

SOURCES = ("kafka", "pulsar")
"""What of a site is a source; the rest are frameworks."""
PATIENCE = 2.0
"""Seconds for a connection to an endpoint of the site."""
PACKAGES = {"kafka": ("confluent_kafka", "kafka"), "pulsar": ("pulsar",), "spark": ("pyspark",)}
JARS = {"kafka": ("kafka",), "pulsar": ("pulsar",), "spark": ("spark-kafka",)}
"""By room: the sets of jars that are downloaded when it is first used and nothing of it stands already."""


def missing(rooms: Collection[str], site: Site, cache: Path) -> list[str]:
    """What these rooms need and have not got, a sentence each that says what to do or what will be done."""
    found = [
        f"the package {package} is not installed: pip install 'stream-bench[all]'"
        for room in sorted(rooms)
        for package in PACKAGES.get(room, ())
        if find_spec(package) is None
    ]
    elsewhere = {name for name, there in (("kafka", site.kafka), ("pulsar", site.pulsar)) if there is not None}
    embedded = {room for room in rooms if room in JARS} - elsewhere
    if embedded:
        found += _java_missing()
    found += [
        f"the jars of {name} are not in the cache: they will be downloaded first"
        for room in sorted(embedded)
        for name in JARS[room]
        if not cached(name, cache)
    ]
    return found + _unreadable(site) + unreachable(site)


def _unreadable(site: Site) -> list[str]:
    """The files that the site names and that cannot be read here, a sentence each."""
    named = [(f"site.pulsar.{of}", getattr(site.pulsar, of)) for of in ("ca_file", "token_file") if site.pulsar is not None]
    return [f"{key}: {path} cannot be read" for key, path in named if path is not None and not os.access(path, os.R_OK)]


class Gap(Struct, frozen=True):
    """An endpoint of the site to which no connection can be made within two seconds."""

    endpoint: str
    """kind and address"""
    why: str
    refused: bool
    """whether its host answered, and has nothing there"""

    def __str__(self) -> str:
        return f"{self.endpoint}: no connection ({self.why})"


def endpoints(site: Site) -> list[tuple[str, str]]:
    """(kind, host:port) of everything that stands at the site already."""
    found = [("kafka", address.strip()) for address in (site.kafka.bootstrap.split(",") if site.kafka else [])]
    if site.pulsar:
        service = site.pulsar.service_url.partition("://")[2].split(",")
        found += [("pulsar", address) for address in (*service, urlsplit(site.pulsar.admin_url).netloc)]
    if site.spark and site.spark.master.startswith("spark://"):
        found.append(("spark", site.spark.master.removeprefix("spark://")))
    return found


def gaps(site: Site) -> list[Gap]:
    """The endpoints of the site that cannot be reached."""
    return [gap for kind, address in endpoints(site) if (gap := _gap(kind, address))]


def unreachable(site: Site) -> list[str]:
    """The same, a sentence each."""
    return [str(gap) for gap in gaps(site)]


def require(site: Site) -> None:
    """Raise SiteError unless every endpoint of the site can be reached."""
    missing = unreachable(site)
    if missing:
        raise SiteError(f"{'; '.join(missing)}; see: bench doctor --site FILE")


def _gap(kind: str, address: str) -> Gap | None:
    try:
        socket.create_connection(host_and_port(address), timeout=PATIENCE).close()
    except (OSError, ValueError) as problem:
        return Gap(
            f"{kind} at {address}", getattr(problem, "strerror", None) or str(problem), isinstance(problem, ConnectionRefusedError)
        )
    return None


def _java_missing() -> list[str]:
    try:
        java()
    except HarnessError as problem:
        return [str(problem)]
    return []
