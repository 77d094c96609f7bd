"""Pulsar's section of a site file: a cluster that exists already."""

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from bench.config.address import PATTERN
from bench.plugins.site_section import ExternalService, SiteSection
from bench.units import Size

ServiceUrl = Annotated[
    str,
    Meta(
        pattern=rf"^pulsar(\+ssl)?://{PATTERN}(,{PATTERN})*$(?!\n)",
        description="pulsar://host:port or pulsar+ssl://host:port",
    ),
]
AdminUrl = Annotated[
    str,
    Meta(pattern=rf"^https?://{PATTERN}(/\S*)?$(?!\n)", description="http://host:port or https://host:port"),
]
Namespace = Annotated[str, Meta(pattern=r"^[\w.=:-]+/[\w.=:-]+$(?!\n)", description="tenant/namespace")]


class PulsarSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Pulsar that exists already. Secrets stay in files of their own: the site is written into every run folder."""

    service_url: ServiceUrl
    admin_url: AdminUrl
    namespace: Namespace = "public/default"
    ca_file: str | None = None
    """file with the trusted certificates (PEM), for pulsar+ssl:// and https://; the system's when left out"""
    token_file: str | None = None
    """file; its first line is the token for clients"""
    bookies: Annotated[int, Meta(ge=1)] | None = None
    """number of bookies; the bound of their disks follows from it"""
    write_quorum: Annotated[int, Meta(ge=1)] | None = None
    """number of bookies that store each message, as the brokers are configured"""

    message_limit: Size | None = None
    """largest message that its brokers take (maxMessageSize); 5 MiB, as shipped, when left out"""

    def __post_init__(self) -> None:
        """Refuse more copies of a message than there are bookies."""
        if (self.write_quorum or 1) > (self.bookies or self.write_quorum or 1):
            raise ValueError(f"pulsar.write_quorum ({self.write_quorum}) is above pulsar.bookies ({self.bookies})")

    @property
    def brokers(self) -> list[str]:
        """Return host:port of each broker that the site names."""
        return self.service_url.partition("://")[2].split(",")


def _describe(site: PulsarSite) -> ExternalService:
    named = (("ca_file", site.ca_file), ("token_file", site.token_file))
    return ExternalService(
        endpoints=[*site.brokers, urlsplit(site.admin_url).netloc],
        files=[(key, path) for key, path in named if path is not None],
        warnings=list(_open_tokens(site)),
    )


def _open_tokens(site: PulsarSite) -> Iterator[str]:
    """Yield where the token crosses an unencrypted connection."""
    if site.token_file is None:
        return
    for url in (site.service_url, site.admin_url):
        if url.startswith(("pulsar://", "http://")):
            yield f"pulsar at {url}: its token goes over an unencrypted connection, where others can read it"


PULSAR_SITE = SiteSection("pulsar", PulsarSite, _describe)
