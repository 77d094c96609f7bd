"""Where a scenario runs: endpoints of services that somebody else runs, figures of the hosts; no site = this machine."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from bench.units import Bandwidth, limits

_ADDRESS = r"(\[[0-9a-fA-F:]+\]|[^\s,:/\[\]]+):[1-9][0-9]{0,4}"
Bootstrap = Annotated[
    str,
    Meta(
        pattern=rf"^{_ADDRESS}(,{_ADDRESS})*$(?!\n)",
        description="host:port, several separated by commas without spaces",
    ),
]
ServiceUrl = Annotated[
    str,
    Meta(
        pattern=rf"^pulsar(\+ssl)?://{_ADDRESS}(,{_ADDRESS})*$(?!\n)",
        description="pulsar://host:port or pulsar+ssl://host:port",
    ),
]
AdminUrl = Annotated[
    str, Meta(pattern=rf"^https?://{_ADDRESS}(/\S*)?$(?!\n)", description="http://host:port or https://host:port")
]
Namespace = Annotated[str, Meta(pattern=r"^[\w.=:-]+/[\w.=:-]+$(?!\n)", description="tenant/namespace")]
Master = Annotated[
    str,
    Meta(
        pattern=r"^(spark://\S+|k8s://\S+|yarn|local(\[\S+\])?)$(?!\n)",
        description="a Spark master URL: spark://host:port, yarn, k8s://host:port or local[cores]",
    ),
]


Address = Annotated[str, Meta(pattern=rf"^{_ADDRESS}$(?!\n)", description="host:port")]


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of an Address; the brackets of an IPv6 address are not of its host."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


class Security(Struct, frozen=True, forbid_unknown_fields=True):
    """What a secured Kafka asks of its clients: TLS, and a password over it (SASL/PLAIN)."""

    user: str
    password_file: str
    """a file of this machine; its text stands in no record of a run"""
    ca_file: str
    """a file of this machine with the certificates that the brokers' own are signed by (PEM)"""


class KafkaSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka that stands already."""

    bootstrap: Bootstrap
    security: Security | None = None


class PulsarSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Pulsar that stands already. Secrets stay in files of their own: the site is written into every run's folder."""

    service_url: ServiceUrl
    admin_url: AdminUrl
    namespace: Namespace = "public/default"
    ca_file: str | None = None
    """of the certificates that are trusted, for pulsar+ssl:// and https://; the system's when left out"""
    token_file: str | None = None
    """whose first line is the token that lets in"""
    bookies: Annotated[int, Meta(ge=1)] | None = None
    """how many there are; what a disk of theirs takes follows from it"""
    write_quorum: Annotated[int, Meta(ge=1)] | None = None
    """how many bookies keep each message, as its brokers are set"""

    def __post_init__(self) -> None:
        """Refuse more copies of a message than there are bookies."""
        if (self.write_quorum or 1) > (self.bookies or self.write_quorum or 1):
            raise ValueError(f"pulsar.write_quorum ({self.write_quorum}) is above pulsar.bookies ({self.bookies})")


class SparkSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Spark that stands already."""

    master: Master
    driver_host: str | None = None
    """The address under which Spark's executors reach this machine."""
    conf: Mapping[str, str] = {}
    """Spark settings that the place asks for: ports that a firewall lets through, memory of an executor."""
    password_file: str | None = None
    """whose first line drivers must know (spark.authenticate); their connections are then encrypted"""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """of all its workers; the site's `cores` when left out"""


class HarmonicioSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A HarmonicIO that stands already; its workers must allow `python:frameworks.harmonicio.job:Job`."""

    master: Address
    """of its control plane"""
    data: Address
    """where the master takes connectors"""
    listen: Address
    """of this machine, where PEs reach it: there they tell what they have done"""
    token_file: str | None = None
    """whose first line is the operator's token"""
    connector_token_file: str | None = None
    """whose first line is the connectors' token"""
    tls: str | None = None
    """folder with certificate.pem, key.pem and authority.pem, for mutual TLS; plain TCP when left out"""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """of all its workers; the site's `cores` when left out"""


class FilesSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A folder that this machine and the frameworks see under the same path, such as one of an NFS server."""

    folder: Annotated[str, Meta(pattern=r"^/\S+$(?!\n)", description="an absolute path without spaces")]
    """each cell has a folder of its own in it, removed at the end; a scenario's settings.files.folder is not used"""


class TcpSite(Struct, frozen=True, forbid_unknown_fields=True):
    """Where this machine serves messages to frameworks of the site (the source tcp)."""

    listen: Address
    """of this machine, where they reach it; without it the source listens where its settings say, on loopback"""


class LoadSite(Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts that send: on each `bench worker` waits for this machine, where Locust's master then listens for it."""

    listen: Address
    """of this machine, where they reach it; whoever else does can join the load, so a firewall should let only them"""
    workers: Annotated[int, Meta(ge=1, le=256)]
    """how many of them there are, a process each; a scenario's load.workers, which are of this machine, are not started"""


class HostSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A host of the site."""

    probes: Address
    """where a node exporter of Prometheus serves its figures"""
    services: Mapping[str, str] = {}
    """what must run there, by name: its version"""


_SERVICES = {"kafka": "kafka", "pulsar": "pulsar", "spark": "spark", "harmonicio": "harmonicio", "stream": "harmonicio"}
"""By room: the part of a site that is its service."""
_SEEN_FROM_AFAR = ("kafka", "pulsar", "harmonicio", "files", "tcp")
"""The parts of a site that put a source where its frameworks see it."""


class Site(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole site file; whatever it leaves out is embedded on this machine."""

    name: str = "this machine"
    kafka: KafkaSite | None = None
    pulsar: PulsarSite | None = None
    spark: SparkSite | None = None
    harmonicio: HarmonicioSite | None = None
    files: FilesSite | None = None
    tcp: TcpSite | None = None
    load: LoadSite | None = None
    cores: Annotated[int, Meta(ge=1)] | None = None
    """Cores that a framework of the site has, where its own part does not say; this machine's when left out."""
    bandwidth: Annotated[Bandwidth, limits(over="0 MB/s")] | None = None
    """Of one network card, in one direction: between source and framework; there is none within one machine."""
    disk: Annotated[Bandwidth, limits(over="0 MB/s")] | None = None
    """Of one disk of the source's hosts, for as long as one likes; unknown when left out."""
    shared_machine: bool = False
    """Whether the hosts share one machine, as hosts made for tests do: what else it does is then not told apart."""
    hosts: Mapping[str, HostSite] = {}
    """By name: the doctor looks at them, and how far their clocks are apart stands beside every latency."""

    def elsewhere(self, room: str) -> bool:
        """Whether a room's service stands already, so that its processes cannot be seen from here."""
        return self._service(room) is not None

    def cores_of(self, framework: str, here: int) -> int:
        """Cores that a framework has: on the site what the site file says, otherwise those of this machine that are given."""
        service = self._service(framework)
        own: int | None = getattr(service, "cores", None)
        return here if service is None else own or self.cores or here

    def unseen(self, framework: str, source: str) -> str | None:
        """Why a framework of the site would not see a source, for want of a part of the site file; None where it does, or where
        nothing is known of such a source."""
        part = _SERVICES.get(source, source)
        if not self.elsewhere(framework) or part not in _SEEN_FROM_AFAR or getattr(self, part) is not None:
            return None
        return f"{framework} stands on the site, {source} on this machine, where it is not seen: the site file has no `{part}`"

    def _service(self, room: str) -> Struct | None:
        service: Struct | None = getattr(self, _SERVICES[room]) if room in _SERVICES else None
        return service

    def link(self, framework: str, source: str) -> Bandwidth | None:
        """Bytes/s that messages of a system can come at, in one direction; None where they stay within this machine."""
        return self.bandwidth if self.load is not None or self.elsewhere(source) or self.elsewhere(framework) else None
