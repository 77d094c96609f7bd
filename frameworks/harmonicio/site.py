"""HarmonicIO's section of a site file: a master that exists already."""

from typing import Annotated

from msgspec import Meta, Struct

from bench.config.address import HostPort
from bench.plugins.site_section import ExternalService, SiteSection

_CERTIFICATES = ("certificate.pem", "key.pem", "authority.pem")


class HarmonicioSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A HarmonicIO that exists already; its workers must allow `python:frameworks.harmonicio.job:Job`."""

    master: HostPort
    """address of the master's control plane"""
    data: HostPort
    """where the master takes connectors"""
    listen: HostPort
    """address of this machine to which PEs send their reports"""
    token_file: str | None = None
    """file; its first line is the operator's token"""
    connector_token_file: str | None = None
    """file; its first line is the connectors' token"""
    tls: str | None = None
    """folder with certificate.pem, key.pem and authority.pem, for mutual TLS; plain TCP when left out"""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """cores of all its workers together; the site's `cores` when left out"""


def _describe(site: HarmonicioSite) -> ExternalService:
    named = (("token_file", site.token_file), ("connector_token_file", site.connector_token_file))
    files = [(key, path) for key, path in named if path is not None]
    warnings = []
    if site.tls is None and files:
        warnings.append(
            f"harmonicio at {site.master}: its token goes over an unencrypted connection, where others can read it"
        )
    return ExternalService(
        endpoints=[site.master, site.data],
        files=files + [("tls", f"{site.tls}/{name}") for name in _CERTIFICATES if site.tls is not None],
        listens={"listen": site.listen},
        warnings=warnings,
        cores=site.cores,
    )


HARMONICIO_SITE = SiteSection("harmonicio", HarmonicioSite, _describe)
