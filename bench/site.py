"""Where a scenario runs: endpoints of services that somebody else runs, figures of the hosts; no site = this machine."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from bench.units import Bandwidth, limits

_ADDRESS = r"(\[[0-9a-fA-F:]+\]|[^\s,:/\[\]]+):[1-9][0-9]{0,4}"
Bootstrap = Annotated[
    str, Meta(pattern=rf"^{_ADDRESS}(,{_ADDRESS})*$(?!\n)", description="host:port, several separated by commas without spaces")
]
ServiceUrl = Annotated[
    str,
    Meta(pattern=rf"^pulsar(\+ssl)?://{_ADDRESS}(,{_ADDRESS})*$(?!\n)", description="pulsar://host:port or pulsar+ssl://host:port"),
]
AdminUrl = Annotated[str, Meta(pattern=rf"^https?://{_ADDRESS}(/\S*)?$(?!\n)", description="http://host:port or https://host:port")]
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


class SparkSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Spark that stands already."""

    master: Master
    driver_host: str | None = None
    """The address under which Spark's executors reach this machine."""
    conf: Mapping[str, str] = {}
    """Spark settings that the place asks for: ports that a firewall lets through, memory of an executor."""
    password_file: str | None = None
    """whose first line drivers must know (spark.authenticate); their connections are then encrypted"""


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


class Site(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole site file; whatever it leaves out is embedded on this machine."""

    name: str = "this machine"
    kafka: KafkaSite | None = None
    pulsar: PulsarSite | None = None
    spark: SparkSite | None = None
    load: LoadSite | None = None
    cores: Annotated[int, Meta(ge=1)] | None = None
    """Cores that the framework has; this machine's when left out."""
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
        return getattr(self, room, None) is not None

    def link(self, framework: str, source: str) -> Bandwidth | None:
        """Bytes/s that messages of a system can come at, in one direction; None where they stay within this machine."""
        return self.bandwidth if self.load is not None or self.elsewhere(source) or self.elsewhere(framework) else None
