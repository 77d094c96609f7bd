"""Ansible filters that compare the plan of a site with what a cloud offers, before anything is created."""

import difflib
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

QUOTAS = {
    "instances": "servers",
    "cores": "cores",
    "ram_mb": "RAM (MB)",
    "server_groups": "server groups",
    "volumes": "volumes",
    "gigabytes": "volume storage (GB)",
    "floating_ips": "floating IP addresses",
    "networks": "networks",
    "routers": "routers",
    "security_groups": "security groups",
}
"""The quotas that a site needs, with their names in messages."""
MAX_NAMES = 40
"""How many existing names a message lists."""
Resource = Mapping[str, Any]


class FilterModule:
    """The filters of this file, as Ansible loads them."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names in templates."""
        return {"find_named": find_named, "preflight_errors": preflight_errors}


def find_named(resources: Sequence[Resource], name: str) -> list[Resource]:
    """Return the resources with a name, or with it as their id."""
    return [one for one in resources if name in (one["id"], one["name"])]


def preflight_errors(plan: Mapping[str, Any], offer: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Return the reasons why a cloud cannot create a site, one line each.

    Args:
        plan: `servers` (as `expand_servers` returns them), `site`, `image`, `network` (an existing one, or an empty
            text), `cidr`, `external_network`, `zone` and `spread`.
        offer: What the cloud offers, as the module `cloud_offer` returns it.
        own: Resources that the site has already, by kind: servers, volumes, networks, routers, groups (security
            groups); and all addresses (floating IP addresses) and server_groups of the project.
    """
    names = {one["name"] for one in own["servers"]}
    missing = [server for server in plan["servers"] if server["name"] not in names]
    return [
        *_check_kinds(missing, plan, offer),
        *_check_zone(missing, plan, offer),
        *_check_volume_service(plan, offer),
        *_check_network(plan, offer),
        *_check_external_network(plan, offer),
        *_check_quota(count_needed(missing, plan, offer, own), offer["left"]),
    ]


def count_needed(
    missing: Sequence[Resource], plan: Mapping[str, Any], offer: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, int]:
    """Return how much of each quota is needed for what the site does not have yet."""
    flavors = [flavor for one in missing for flavor in find_named(offer["flavors"], one["kind"]["flavor"])[:1]]
    volumes = {one["name"] for one in own["volumes"]}
    sizes = [_size(one, "volume_gb") for one in plan["servers"] if one["name"] not in volumes]
    sizes += [_size(one, "boot_volume_gb") for one in missing]
    groups = {one["name"] for one in own["server_groups"]}
    kinds = {f"{plan['site']}-{one['kind']['name']}" for one in plan["servers"]} if plan["spread"] else set()
    with_address = {str(one["fixed_ip_address"]) for one in own["addresses"]}
    addresses = {
        one["name"]: {str(address["addr"]) for of_network in one["addresses"].values() for address in of_network}
        for one in own["servers"]
    }
    return {
        "instances": len(missing),
        "cores": sum(flavor["vcpus"] for flavor in flavors),
        "ram_mb": sum(flavor["ram_mb"] for flavor in flavors),
        "server_groups": len(kinds - groups),
        "volumes": sum(size > 0 for size in sizes),
        "gigabytes": sum(sizes),
        "floating_ips": sum(
            not addresses.get(one["name"], set()) & with_address
            for one in plan["servers"]
            if one["kind"].get("floating_ip")
        ),
        "networks": int(not plan["network"] and not own["networks"]),
        "routers": int(not plan["network"] and bool(plan["external_network"]) and not own["routers"]),
        "security_groups": int(not own["groups"]),
    }


def _check_kinds(missing: Sequence[Resource], plan: Mapping[str, Any], offer: Mapping[str, Any]) -> Iterator[str]:
    images = find_named(offer["images"], plan["image"])
    if missing and not images:
        yield f"openstack_image: {_not_found(plan['image'], offer['images'])}"
    image_gb = max((image["disk_gb"] for image in images), default=0)
    for kind in {one["kind"]["name"]: one["kind"] for one in missing}.values():
        flavors, boot_gb = find_named(offer["flavors"], kind["flavor"]), int(kind.get("boot_volume_gb") or 0)
        if not flavors:
            yield f"kind {kind['name']}: flavor {_not_found(kind['flavor'], offer['flavors'])}"
        elif not boot_gb and not flavors[0]["disk_gb"]:
            yield f"kind {kind['name']}: flavor {kind['flavor']} has no disk; set boot_volume_gb, such as 20"
        elif (boot_gb or flavors[0]["disk_gb"]) < image_gb:
            where = "boot_volume_gb" if boot_gb else f"the disk of flavor {kind['flavor']}"
            yield (
                f"kind {kind['name']}: {where} is {boot_gb or flavors[0]['disk_gb']} GB, but image {plan['image']}"
                f" needs {image_gb} GB"
            )
        if plan["spread"] and 0 <= offer["group_members"] < int(kind["count"]):
            yield (
                f"kind {kind['name']}: has {kind['count']} servers, but a server group of this project holds at most"
                f" {offer['group_members']}; set openstack_spread: false, or make two kinds of it"
            )


def _check_zone(missing: Sequence[Resource], plan: Mapping[str, Any], offer: Mapping[str, Any]) -> Iterator[str]:
    zone = str(plan["zone"]).partition(":")[0]  # an administrator may add a host: zone:host
    if missing and zone and zone not in offer["zones"]:
        yield f"openstack_availability_zone: {_not_found(zone, [{'name': name} for name in offer['zones']])}"


def _check_volume_service(plan: Mapping[str, Any], offer: Mapping[str, Any]) -> Iterator[str]:
    if not offer["has_volumes"]:
        for kind in {one["kind"]["name"]: one["kind"] for one in plan["servers"]}.values():
            for name in ("volume_gb", "boot_volume_gb"):
                if kind.get(name):
                    yield f"kind {kind['name']}: the cloud has no volume service; set {name}: 0"


def _check_network(plan: Mapping[str, Any], offer: Mapping[str, Any]) -> Iterator[str]:
    if not plan["network"]:
        return
    found = find_named(offer["networks"], plan["network"])
    if len(found) != 1:
        yield f"openstack_network: {_not_unique(plan['network'], found, offer['networks'])}"
        return
    cidrs = list(map(ipaddress.ip_network, found[0]["cidrs"]))
    subnets = [one for one in cidrs if one.version == min(cidr.version for cidr in cidrs)]  # hosts prefer IPv4
    site = ipaddress.ip_network(plan["cidr"])
    if not subnets:
        yield f"openstack_network: network {plan['network']} has no subnet; its servers would have no address"
    elif not all(subnet.version == site.version and subnet.subnet_of(site) for subnet in subnets):
        yield (
            f"openstack_network: network {plan['network']} has the addresses {', '.join(map(str, subnets))}, which are"
            f" not in {site}; set site_networks to them"
        )


def _check_external_network(plan: Mapping[str, Any], offer: Mapping[str, Any]) -> Iterator[str]:
    name, external = plan["external_network"], [one for one in offer["networks"] if one["external"]]
    found = find_named(external, name)
    if name and len(found) != 1:
        yield f"openstack_external_network: {_not_unique(name, found, external)}"
    elif any(one["kind"].get("floating_ip") for one in plan["servers"]) and ":" in plan["cidr"]:
        yield "floating_ip: floating IP addresses are IPv4, but the site's network is IPv6; remove it from all kinds"
    elif not name and any(one["kind"].get("floating_ip") for one in plan["servers"]):
        yield f"openstack_external_network: is empty, but floating_ip needs one; existing: {_list_names(external)}"


def _check_quota(needed: Mapping[str, int], left: Mapping[str, int]) -> Iterator[str]:
    for name, label in QUOTAS.items():
        if name in left and needed[name] > left[name]:
            yield f"quota of {label}: {needed[name]} more needed, {max(left[name], 0)} left in the project"


def _size(server: Resource, name: str) -> int:
    return int(server["kind"].get(name) or 0)


def _not_unique(name: str, found: Sequence[Resource], known: Sequence[Resource]) -> str:
    return f"found {len(found)} named {name}; give the id" if found else _not_found(name, known)


def _not_found(name: str, known: Sequence[Resource]) -> str:
    matches = difflib.get_close_matches(name, [str(one["name"]) for one in known], 1, 0.6)
    suggestion = f" did you mean {matches[0]}?" if matches else ""
    return f"{name} does not exist;{suggestion} existing: {_list_names(known)}"


def _list_names(known: Sequence[Resource]) -> str:
    names = sorted({str(one["name"]) for one in known})
    return (
        ", ".join(names[:MAX_NAMES]) + (f", and {len(names) - MAX_NAMES} more" if names[MAX_NAMES:] else "") or "none"
    )
