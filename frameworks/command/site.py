"""The section `command` of a site file: the hosts on which a program under test does its work."""

from typing import Annotated

from msgspec import Meta, Struct

from bench.plugins.site_section import ExternalService, SiteSection


class CommandSite(Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts of a program that does its work elsewhere, such as a job of a cluster; nothing is known of their load."""

    cores: Annotated[int, Meta(ge=1)] | None = None
    """of these hosts; the site's `cores` when left out"""


def _describe(site: CommandSite) -> ExternalService:
    return ExternalService(cores=site.cores)


COMMAND_SITE = SiteSection("command", CommandSite, _describe)
