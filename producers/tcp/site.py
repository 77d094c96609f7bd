"""The section `tcp` of a site file: where this machine serves messages to frameworks of the site."""

from msgspec import Struct

from bench.config.address import HostPort
from bench.plugins.site_section import ExternalService, SiteSection


class TcpSite(Struct, frozen=True, forbid_unknown_fields=True):
    """The address at which this machine serves messages to frameworks of the site (the source tcp)."""

    listen: HostPort
    """address of this machine to which frameworks connect; several senders also take the ports that follow it. Without
    this section the source listens at `settings.tcp.host`, on loopback"""
    load_hosts: tuple[HostPort, ...] = ()
    """with `load`: an address for each load worker, at which it serves messages from its own host"""


def _describe(site: TcpSite) -> ExternalService:
    return ExternalService(listens={"listen": site.listen}, remote=False, load_workers=len(site.load_hosts))


TCP_SITE = SiteSection("tcp", TcpSite, _describe)
