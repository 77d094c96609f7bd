"""Ansible filters that tell the resources of a site in a cloud from all others, and find conflicts between them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

KINDS_WITH_SITE_NAME = {"networks": "network", "routers": "router", "groups": "security group"}
KINDS_WITH_SERVER_NAME = {"servers": "server", "volumes": "volume"}
SETTLED = ("ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED")
"""States of a server that exists and did not fail."""
Resource = Mapping[str, Any]


class FilterModule:
    """The filters of this file, as Ansible loads them."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names in templates."""
        return {
            "owned_by": owned_by,
            "cloud_conflicts": cloud_conflicts,
            "former_kinds": former_kinds,
            "removable_groups": removable_groups,
            "server_faults": server_faults,
        }


def owned_by(resources: Sequence[Resource], site: str) -> list[Resource]:
    """Return the resources that openstack.yml created for a site, which carry its mark."""
    return [resource for resource in resources if is_owned_by(resource, site)]


def cloud_conflicts(
    resources: Mapping[str, Sequence[Resource]], site: str, planned: Sequence[Resource], *, state: str
) -> list[str]:
    """Return the reasons not to change a cloud, one line each.

    Args:
        resources: Existing resources by kind: networks, routers, groups (security groups), servers, volumes,
            server_groups. Where the site uses a network of others, networks and routers are empty.
        site: Name of the site.
        planned: The planned servers, as `expand_servers` returns them.
        state: `present` or `absent`; a server that is no longer planned, and a server group with servers of others,
            are conflicts only for `present`.
    """
    names = [server["name"] for server in planned]
    if state == "absent":
        return [*_find_foreign(resources, site, names)]
    return [
        *_find_foreign(resources, site, names),
        *_find_surplus(resources["servers"], site, names),
        *_find_shared_groups(resources, site, {server["kind"]["name"] for server in planned}),
    ]


def former_kinds(servers: Sequence[Resource], site: str) -> list[str]:
    """Return the names of all kinds that the site has had, as its servers remember them in their metadata."""
    texts = [
        str(server["metadata"].get(key, ""))
        for server in owned_by(servers, site)
        for key in ("stream_bench_kind", "stream_bench_kinds")
    ]
    return sorted({kind for text in texts for kind in text.split("+") if kind})


def removable_groups(
    groups: Sequence[Resource], servers: Sequence[Resource], site: str, kinds: Sequence[str]
) -> list[Resource]:
    """Return the server groups that have the name of a kind of the site and no server of others.

    A server group has no description and no metadata, so that it cannot carry the site's mark.
    """
    names = {f"{site}-{kind}" for kind in kinds}
    return [one for one in groups if one["name"] in names and not _others_in_group(one, servers, site)]


def server_faults(servers: Sequence[Resource], planned: Sequence[Resource], timeout_s: int) -> list[str]:
    """Return a line for each planned server that does not run, with the cloud's reason."""
    by_name = {server["name"]: server for server in servers}
    return [line for server in planned for line in _find_fault(server["name"], by_name.get(server["name"]), timeout_s)]


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


def _find_shared_groups(
    resources: Mapping[str, Sequence[Resource]], site: str, kinds: Collection[str]
) -> Iterator[str]:
    names = {f"{site}-{kind}" for kind in kinds}
    for group in resources["server_groups"]:
        if group["name"] in names and _others_in_group(group, resources["servers"], site):
            yield (
                f"server group {group['name']}: already exists and has servers that are not of this site;"
                " remove it, or choose another name for the site"
            )


def _others_in_group(group: Resource, servers: Sequence[Resource], site: str) -> set[str]:
    return set(group["member_ids"] or ()) - {server["id"] for server in owned_by(servers, site)}


def _find_fault(name: str, server: Resource | None, timeout_s: int) -> Iterator[str]:
    if server is None:
        yield f"server {name}: does not exist any more; run openstack.yml again"
    elif server["status"] == "BUILD":
        yield (
            f"server {name}: is still being created after {timeout_s} s (openstack_server_timeout_s);"
            " run openstack.yml again"
        )
    elif server["status"] not in SETTLED:
        reason = (server.get("fault") or {}).get("message") or "the cloud gives no reason"
        yield (
            f"server {name}: its status is {server['status']} ({reason});"
            f" openstack server delete {name}, and run openstack.yml again"
        )
