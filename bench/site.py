"""Where a scenario runs: endpoints of services that somebody else runs, and the figures of the hosts; no site = this machine."""

from msgspec import Struct

from bench.units import Bandwidth


class KafkaSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka that stands already."""

    bootstrap: str
    """host:port, several separated by commas"""


class SparkSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Spark that stands already."""

    master: str
    """A master URL: spark://host:port, yarn, k8s://..."""
    driver_host: str | None = None
    """The address under which Spark's executors reach this machine."""


class Site(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole site file; whatever it leaves out is embedded on this machine."""

    name: str = "this machine"
    kafka: KafkaSite | None = None
    spark: SparkSite | None = None
    cores: int | None = None
    """Cores that the framework has; this machine's when left out."""
    bandwidth: Bandwidth | None = None
    """Of the link between source and framework; there is none within one machine."""
