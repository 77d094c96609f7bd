"""The part of a site file that a plugin owns: its type, and what the harness may know of the service behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from bench.config.site import Site
from bench.units import Quantity

Values = TypeVar("Values", bound=Struct)


class ExternalService(Struct, frozen=True):
    """A service of the site as the harness sees it."""

    endpoints: Sequence[str] = ()
    """host:port of what must accept connections before a run"""
    files: Sequence[tuple[str, str]] = ()
    """(key of the section, path) of files that must be readable here"""
    listens: Mapping[str, str] = {}
    """by key: host:port of this machine at which the plugin will listen for other hosts"""
    folders: Mapping[str, str] = {}
    """by key: folders that must be writable here"""
    warnings: Sequence[str] = ()
    """what the user should know, such as a secret that crosses an unencrypted connection"""
    cores: int | None = None
    """of all its hosts; None where the section does not say"""
    remote: bool = True
    """whether its processes run on other hosts than the harness"""
    load_workers: int | None = 0
    """where it is not remote: how many load workers of other hosts can serve it; None for any number"""


class Section(Protocol):
    """A section of any type, as the harness uses it."""

    @property
    def key(self) -> str:
        """Return its key in the site file."""

    @property
    def type(self) -> type[Struct]:
        """Return the type of its values."""

    def service(self, site: Site) -> ExternalService | None:
        """Return what the site file says of the service; None where it has no such section."""


@dataclass(frozen=True)
class SiteSection(Generic[Values]):
    """A section of one type, as its plugin uses it."""

    key: str
    type: type[Values]
    describe: Callable[[Values], ExternalService]

    def read(self, site: Site) -> Values | None:
        """Return the values of the section; None where the site file has no such section."""
        values = site.sections.get(self.key)
        if values is None or isinstance(values, self.type):
            return values
        return msgspec.convert(values, self.type, dec_hook=_read_quantity)

    def service(self, site: Site) -> ExternalService | None:
        """Return what the site file says of the service; None where it has no such section."""
        values = self.read(site)
        return None if values is None else self.describe(values)


def _read_quantity(kind: type[Quantity], value: object) -> Quantity:
    return kind.read(value)
