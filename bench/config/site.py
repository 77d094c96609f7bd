"""Site files: the hosts and services that exist already. Without a site, everything runs on this machine.

A site file has the keys of `Site` (all but `sections`) and, beside them, a section of each plugin that has one, under
the plugin's key.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from bench.config.address import HostPort
from bench.units import Bandwidth, exact_text, limits


class LoadHosts(Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts that send: on each of them `bench worker` waits for this machine."""

    listen: HostPort
    """address of this machine to which load workers connect; whoever reaches it can join, so a firewall should allow
    only them"""
    workers: Annotated[int, Meta(ge=1, le=256)]
    """processes on those hosts; a scenario's load.workers, which run on this machine, are not started"""


class HostSite(Struct, frozen=True, forbid_unknown_fields=True):
    """A host of the site."""

    probes: HostPort
    """where Prometheus' node exporter serves its figures"""
    services: Mapping[str, str] = {}
    """services that must run there: name and version"""


class Site(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole site file; whatever it leaves out is started on this machine."""

    name: str = "this machine"
    load: LoadHosts | None = None
    cores: Annotated[int, Meta(ge=1)] | None = None
    """Cores of each framework of the site whose section names none; this machine's when left out."""
    bandwidth: Annotated[Bandwidth, limits(over="0 MB/s")] | None = None
    """Bandwidth of one network card in one direction, between source and framework; not used within one machine."""
    disk: Annotated[Bandwidth, limits(over="0 MB/s")] | None = None
    """Bandwidth of one disk of the source's hosts, sustained; unknown when left out."""
    shared_machine: bool = False
    """Whether the hosts share one machine, as hosts made for tests do: other work on them cannot be distinguished
    then."""
    hosts: Mapping[str, HostSite] = {}
    """Hosts by name. `bench doctor` checks them, and latencies carry the offset of their clocks."""
    sections: Mapping[str, Any] = {}
    """Of the plugins, by key; read through bench.plugins.site_section."""


def file_type(sections: Mapping[str, type[Struct]]) -> type[Struct]:
    """Return the type of a site file to which plugins add these sections, by key."""
    own = [
        (field.name, field.type, _same_default(field))
        for field in msgspec.structs.fields(Site)
        if field.name != "sections"
    ]
    added = [(key, kind | None, None) for key, kind in sorted(sections.items())]
    return msgspec.defstruct(
        "Site", [*own, *added], frozen=True, forbid_unknown_fields=True, namespace={"__doc__": Site.__doc__}
    )


def from_file(values: Struct) -> Site:
    """Return the site that a file of `file_type` describes."""
    own = {name for name in Site.__struct_fields__ if name != "sections"}
    found = {name: getattr(values, name) for name in values.__struct_fields__}
    sections = {name: value for name, value in found.items() if name not in own and value is not None}
    return Site(**{name: value for name, value in found.items() if name in own}, sections=sections)


def _same_default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return field.default


def same_site(first: Site, second: Site) -> bool:
    """Return whether two sites say the same, whether their sections are typed or as a file has them."""
    return _plain(first) == _plain(second)


def _plain(site: Site) -> object:
    plain = msgspec.json.decode(msgspec.json.encode(site, enc_hook=exact_text))
    for values in plain["sections"].values():
        for key in [key for key, value in values.items() if value is None]:
            del values[key]
    return plain
