"""What the embedded services and the site's endpoints need, and what of it is missing here."""

import os
import socket
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from bench.config.site import Site, host_and_port
from bench.errors import HarnessError, SiteError
from bench.services.java import java
from bench.services.maven_jars import cached

SOURCES = ("kafka", "pulsar")
"""What of a site is a source; the rest are frameworks."""
TIMEOUT_S = 2.0
"""Seconds for a connection to an endpoint of the site."""
PACKAGES = {"kafka": ("confluent_kafka", "kafka"), "pulsar": ("pulsar",), "spark": ("pyspark",)}
_CERTIFICATES = ("certificate.pem", "key.pem", "authority.pem")
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
    return found + unreadable(site) + unserved(site) + unreachable(site)


def unreadable(site: Site) -> list[str]:
    """The files that the site names and that cannot be read here, a sentence each."""
    named = [(key, path) for key, path in _named(site) if path is not None and not _readable(path)]
    return [f"{key}: {path} cannot be read" for key, path in named]


def _named(site: Site) -> Iterator[tuple[str, str | None]]:
    """(key, path) of every file that the site has a key for."""
    if site.kafka is not None and site.kafka.security is not None:
        yield "site.kafka.security.password_file", site.kafka.security.password_file
        yield "site.kafka.security.ca_file", site.kafka.security.ca_file
    if site.pulsar is not None:
        yield "site.pulsar.ca_file", site.pulsar.ca_file
        yield "site.pulsar.token_file", site.pulsar.token_file
    if site.spark is not None:
        yield "site.spark.password_file", site.spark.password_file
    if site.harmonicio is not None:
        yield "site.harmonicio.token_file", site.harmonicio.token_file
        yield "site.harmonicio.connector_token_file", site.harmonicio.connector_token_file
        if site.harmonicio.tls is not None:
            yield from (("site.harmonicio.tls", f"{site.harmonicio.tls}/{name}") for name in _CERTIFICATES)


def _readable(path: str) -> bool:
    return os.access(path, os.R_OK) and not Path(path).is_dir()


def unserved(site: Site) -> list[str]:
    """What this machine has not got for others although the site says so: ports to listen at, a shared folder; a sentence each."""
    listening = [("tcp", site.tcp.listen)] if site.tcp is not None else []
    listening += [("harmonicio", site.harmonicio.listen)] if site.harmonicio is not None else []
    found = [f"site.{part}.listen: {why}" for part, address in listening if (why := _not_ours(address)) is not None]
    if site.files is not None and not os.access(site.files.folder, os.R_OK | os.W_OK | os.X_OK):
        found.append(f"site.files.folder: {site.files.folder} is no folder that can be written; is it mounted?")
    return found


def _not_ours(address: str) -> str | None:
    """Why nobody can listen at an address of this machine now; None where it is possible."""
    try:
        socket.create_server(host_and_port(address)).close()
    except (OSError, ValueError, OverflowError) as problem:
        return f"cannot listen at {address} ({getattr(problem, 'strerror', None) or problem})"
    return None


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
    if site.harmonicio:
        found += [("harmonicio", site.harmonicio.master), ("harmonicio", site.harmonicio.data)]
    return found


def gaps(site: Site) -> list[Gap]:
    """The endpoints of the site that cannot be reached."""
    return [gap for kind, address in endpoints(site) if (gap := _gap(kind, address))]


def unreachable(site: Site) -> list[str]:
    """The same, a sentence each."""
    return [str(gap) for gap in gaps(site)]


def require(site: Site) -> None:
    """Raise SiteError unless every file that the site names can be read, and every endpoint of it be reached."""
    missing = unreadable(site) or unreachable(site)
    if missing:
        raise SiteError(f"{'; '.join(missing)}; see: bench doctor --site FILE")


def _gap(kind: str, address: str) -> Gap | None:
    try:
        socket.create_connection(host_and_port(address), timeout=TIMEOUT_S).close()
    except (OSError, ValueError) as problem:
        return Gap(
            f"{kind} at {address}",
            getattr(problem, "strerror", None) or str(problem),
            isinstance(problem, ConnectionRefusedError),
        )
    return None


def _java_missing() -> list[str]:
    try:
        java()
    except HarnessError as problem:
        return [str(problem)]
    return []
