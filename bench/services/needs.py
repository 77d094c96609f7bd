"""What the embedded services and the site's endpoints need, and what of it is missing here."""

import os
import socket
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from bench.errors import HarnessError
from bench.services.jars import cached
from bench.services.java import java
from bench.site import Site

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


def unreachable(site: Site) -> list[str]:
    """The endpoints of the site to which no connection can be made within two seconds, a sentence each."""
    endpoints = [("kafka", address) for address in (site.kafka.bootstrap.split(",") if site.kafka else [])]
    if site.pulsar:
        service = site.pulsar.service_url.partition("://")[2].split(",")
        endpoints += [("pulsar", address) for address in (*service, urlsplit(site.pulsar.admin_url).netloc)]
    if site.spark and site.spark.master.startswith("spark://"):
        endpoints.append(("spark", site.spark.master.removeprefix("spark://")))
    return [f"{kind} at {address.strip()}: {why}" for kind, address in endpoints if (why := _refusal(address.strip()))]


def _refusal(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return "not host:port"
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError as problem:
        return f"no connection ({problem.strerror or problem})"
    return None


def _java_missing() -> list[str]:
    try:
        java()
    except HarnessError as problem:
        return [str(problem)]
    return []
