"""Flink's section of a site file: a cluster that exists already, standalone or in YARN or Kubernetes.

It was tried against a standalone cluster only.
"""

from typing import Annotated

from msgspec import Meta, Struct

from bench.config.address import HostPort
from bench.plugins.site_section import ExternalService, SiteSection


class FlinkSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A session cluster of Flink 2.3 whose hosts have Python with apache-flink, msgspec and numpy."""

    rest: HostPort
    """address of its REST interface"""
    listen: HostPort
    """address of this machine to which its Python workers send their reports"""
    python: str = "python3"
    """the interpreter on its hosts; of the same version as ours of Flink"""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """task slots that a job takes; the site's `cores` when left out"""


def _describe(site: FlinkSite) -> ExternalService:
    return ExternalService(
        endpoints=[site.rest],
        listens={"listen": site.listen},
        warnings=[f"flink at {site.rest}: jobs, and a secret of Kafka in them, go over an unencrypted connection"],
        cores=site.cores,
    )


FLINK_SITE = SiteSection("flink", FlinkSite, _describe)
