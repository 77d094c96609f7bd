"""The section `tcp` of a site file: where this machine serves messages to frameworks of the site."""

from msgspec import Struct

from bench.config.address import HostPort
from bench.plugins.site_section import ExternalService, SiteSection


class TcpSite(Struct, frozen=True, forbid_unknown_fields=True):
    """The address at which this machine serves messages to frameworks of the site (the source tcp)."""

    listen: HostPort
    """address of this machine to which frameworks connect; without this section the source listens at
    `settings.tcp.host`, on loopback"""


def _describe(site: TcpSite) -> ExternalService:
    return ExternalService(listens={"listen": site.listen}, remote=False)


TCP_SITE = SiteSection("tcp", TcpSite, _describe)
