"""The section `redis` of a site file: a Redis that exists already."""

from msgspec import Struct

from bench.config.address import HostPort
from bench.plugins.site_section import ExternalService, SiteSection


class RedisSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A Redis that exists already (the source redis-stream)."""

    address: HostPort
    password_file: str | None = None
    """a file of this machine whose first line is the password"""


def _describe(site: RedisSite) -> ExternalService:
    if site.password_file is None:
        return ExternalService(endpoints=[site.address])
    return ExternalService(
        endpoints=[site.address],
        files=[("password_file", site.password_file)],
        warnings=[f"redis at {site.address}: its password goes over an unencrypted connection"],
    )


REDIS_SITE = SiteSection("redis", RedisSite, _describe)
