"""Preflight of a site and its plugins: what is missing before a run, and which endpoints are gone during one."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.config.site import Site
from bench.errors import SiteError, UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.site_section import ExternalService
from bench.services.preflight import connection_error, unavailable_addresses, unreadable_files, unwritable_folders


class MissingEndpoint(Struct, frozen=True):
    """An endpoint of the site to which no connection can be made."""

    section: str
    address: str
    is_source: bool
    """whether it belongs to a source; to a framework otherwise"""
    reason: str
    refused: bool
    """whether its host answered that nothing listens there"""

    def __str__(self) -> str:
        return f"{self.section} at {self.address}: no connection ({self.reason})"


class SiteService(Struct, frozen=True):
    """A section of the site file with what its plugin says of it."""

    key: str
    is_source: bool
    service: ExternalService

    def key_path(self, name: str) -> str:
        """Return a key of the section as the site file has it."""
        return f"site.{self.key}.{name}"


def site_services(site: Site) -> list[SiteService]:
    """Return every section of the site; one that a framework and a source share counts as the framework's."""
    found: dict[str, SiteService] = {}
    for kind, _, section in registry.sections():
        service = section.service(site)
        if service is not None and section.key not in found:
            found[section.key] = SiteService(section.key, kind == "sources", service)
    return list(found.values())


def missing_for(plugins: Iterable[tuple[str, str]], site: Site, cache: Path) -> list[str]:
    """Return what plugins, by (kind, name), and the site need and do not have on this machine, a sentence each.

    Whether the endpoints of the site take connections is not looked at: see missing_endpoints.
    """
    found: dict[str, None] = {}
    for kind, name in sorted(plugins):
        try:
            plugin = registry.framework_plugin(name) if kind == "frameworks" else registry.source_plugin(name)
        except UsageError as problem:
            found[str(problem)] = None
        else:
            found |= dict.fromkeys(plugin.preflight(site, cache))
    return [*found, *unusable_here(site)]


def unusable_here(site: Site) -> list[str]:
    """Return the files, addresses and folders of the site that cannot be used here, a sentence each."""
    found = _unreadable(site)
    for each in site_services(site):
        found += unavailable_addresses(_under(each, each.service.listens))
        found += unwritable_folders(_under(each, each.service.folders))
    return found


def endpoints(site: Site) -> Iterator[tuple[SiteService, str]]:
    """Yield (service, host:port) of everything that exists at the site already."""
    for each in site_services(site):
        for address in each.service.endpoints:
            yield each, address


def missing_endpoints(site: Site) -> list[MissingEndpoint]:
    """Return the endpoints of the site that cannot be reached."""
    return [
        MissingEndpoint(
            each.key, address, each.is_source,
            getattr(problem, "strerror", None) or str(problem), isinstance(problem, ConnectionRefusedError),
        )
        for each, address in endpoints(site)
        if (problem := connection_error(address)) is not None
    ]  # fmt: skip


def part_of(site: Site, cell: Cell) -> Site:
    """Return the site with only the sections of a cell's framework and source; what else is gone is not its affair."""
    plugins = {("frameworks", cell.framework), ("sources", cell.source)}
    used = {section.key for kind, name, section in registry.sections() if (kind, name) in plugins}
    return replace(site, sections={key: section for key, section in site.sections.items() if key in used})


def require_site(site: Site) -> None:
    """Raise SiteError unless every file that the site names can be read and every endpoint of it be reached."""
    missing = _unreadable(site) or [str(one) for one in missing_endpoints(site)]
    if missing:
        raise SiteError(f"{'; '.join(missing)}; see: bench doctor --site FILE")


def _unreadable(site: Site) -> list[str]:
    return [
        line
        for each in site_services(site)
        for line in unreadable_files((each.key_path(key), path) for key, path in each.service.files)
    ]


def _under(each: SiteService, values: Mapping[str, str]) -> dict[str, str]:
    return {each.key_path(name): value for name, value in values.items()}
