"""Ansible filters that tell the resources of a site in a cloud from all others, and find conflicts between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

KINDS_WITH_SITE_NAME = {"networks": "network", "routers": "router", "groups": "security group"}
KINDS_WITH_SERVER_NAME = {"servers": "server", "volumes": "volume"}
Resource = Mapping[str, Any]


class FilterModule:
    """The filters of this file, as Ansible loads them."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names in templates."""
        return {"owned_by": owned_by, "cloud_conflicts": cloud_conflicts}


def owned_by(resources: Sequence[Resource], site: str) -> list[Resource]:
    """Return the resources that openstack.yml created for a site, which carry its mark."""
    return [resource for resource in resources if is_owned_by(resource, site)]


def cloud_conflicts(
    resources: Mapping[str, Sequence[Resource]], site: str, planned: Sequence[str], *, state: str
) -> list[str]:
    """Return the reasons not to change a cloud, one line each.

    Args:
        resources: Existing resources by kind: networks, routers, groups (security groups), servers, volumes.
        site: Name of the site.
        planned: Names of the planned servers.
        state: `present` or `absent`; a server that is no longer planned is a conflict only for `present`.
    """
    return [
        *_find_foreign(resources, site, planned),
        *(_find_surplus(resources["servers"], site, planned) if state == "present" else ()),
    ]


def is_owned_by(resource: Resource, site: str) -> bool:
    """Return whether a resource carries the site's mark in its description or its metadata, whatever its name is."""
    if resource.get("description") == f"stream-bench site {site}":
        return True
    return (resource.get("metadata") or {}).get("stream_bench_site") == site


def _find_foreign(resources: Mapping[str, Sequence[Resource]], site: str, planned: Sequence[str]) -> Iterator[str]:
    for key, kind in {**KINDS_WITH_SITE_NAME, **KINDS_WITH_SERVER_NAME}.items():
        names = [site] if key in KINDS_WITH_SITE_NAME else planned
        for resource in resources[key]:
            if resource["name"] in names and not is_owned_by(resource, site):
                yield (
                    f"{kind} {resource['name']}: already exists and was not created for this site;"
                    " remove it, or choose another name for the site"
                )


def _find_surplus(servers: Sequence[Resource], site: str, planned: Sequence[str]) -> Iterator[str]:
    for server in servers:
        if is_owned_by(server, site) and server["name"] not in planned:
            yield (
                f"server {server['name']}: belongs to the site, but openstack_groups no longer contains it;"
                f" remove it (openstack server delete {server['name']}), or add it to openstack_groups"
            )
