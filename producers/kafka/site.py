"""Kafka's section of a site file: brokers that exist already."""

from typing import Annotated

from msgspec import Meta, Struct

from bench.config.address import PATTERN
from bench.plugins.site_section import ExternalService, SiteSection

Bootstrap = Annotated[
    str,
    Meta(
        pattern=rf"^{PATTERN}(,{PATTERN})*$(?!\n)",
        description="host:port, several separated by commas without spaces",
    ),
]


class KafkaSecurity(Struct, frozen=True, forbid_unknown_fields=True):
    """The client settings of a secured Kafka: TLS, and a password over it (SASL/PLAIN)."""

    user: str
    password_file: str
    """a file of this machine; no record of a run has its text"""
    ca_file: str
    """a file of this machine with the certificates that the brokers' own are signed by (PEM)"""


class KafkaSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka that exists already."""

    bootstrap: Bootstrap
    security: KafkaSecurity | None = None
    replication: Annotated[int, Meta(ge=1)] | None = None
    """copies of each partition where the brokers decide (default.replication.factor); one when left out"""

    @property
    def brokers(self) -> list[str]:
        """Return host:port of each broker that the site names."""
        return self.bootstrap.split(",")


def _describe(site: KafkaSite) -> ExternalService:
    files: list[tuple[str, str]] = []
    if site.security is not None:
        files = [
            ("security.password_file", site.security.password_file),
            ("security.ca_file", site.security.ca_file),
        ]
    return ExternalService(endpoints=site.brokers, files=files)


KAFKA_SITE = SiteSection("kafka", KafkaSite, _describe)
