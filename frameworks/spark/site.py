"""Spark's section of a site file: a cluster that exists already."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from bench.config.address import Host
from bench.plugins.site_section import ExternalService, SiteSection

MasterUrl = Annotated[
    str,
    Meta(
        pattern=r"^(spark://\S+|local(\[\S+\])?)$(?!\n)",
        description="spark://host:port of a standalone cluster, or local[cores]; not yarn or k8s://, where Spark would"
        " get two executors of one core each, whatever the cluster has",
    ),
]


class SparkSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Spark that exists already."""

    master: MasterUrl
    driver_host: Host | None = None
    """The address under which Spark's executors reach this machine."""
    conf: Mapping[str, str] = {}
    """Spark settings that this cluster needs, such as ports that its firewall allows, or an executor's memory."""
    password_file: str | None = None
    """file; its first line is the shared secret of drivers (spark.authenticate); it also turns encryption on"""
    cores: Annotated[int, Meta(ge=1)] | None = None
    """cores of all its workers together; the site's `cores` when left out"""


def _describe(site: SparkSite) -> ExternalService:
    standalone = site.master.startswith("spark://")
    return ExternalService(
        endpoints=[site.master.removeprefix("spark://")] if standalone else [],
        files=[("password_file", site.password_file)] if site.password_file is not None else [],
        cores=site.cores,
    )


SPARK_SITE = SiteSection("spark", SparkSite, _describe)
