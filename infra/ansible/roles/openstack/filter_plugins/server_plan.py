"""Ansible filters: what kinds of hosts come to: single servers, the site that they would make, and what is wrong with either."""

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"expand_servers": expand_servers, "planned_inventory": planned_inventory, "plan_errors": plan_errors}


def expand_servers(kinds: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """Each server of each kind: `name`, which is the site's, the kind's and a number; and `kind`, what its kind says."""
    return [
        {"name": f"{name}-{kind['name']}-{number}", "kind": dict(kind)}
        for kind in kinds
        for number in range(1, int(kind["count"]) + 1)
    ]


def planned_inventory(
    servers: Sequence[Mapping[str, Any]], variables: Mapping[str, Any], addresses: Mapping[str, str]
) -> dict[str, Any]:
    """What the inventory of these servers would be: `groups` with their hosts, and `hosts` with their variables.

    Of `variables` those of the site are taken; `addresses` are those that are known before there is a server, by its name.
    """
    site = {str(key): variables[key] for key in variables if str(key).startswith("site_")}
    groups: dict[str, list[str]] = {"all": [server["name"] for server in servers]}
    for server in servers:
        for group in server["kind"]["groups"]:
            groups.setdefault(group, []).append(server["name"])
    hosts = {
        name: {**site, **({"site_address": addresses[name]} if name in addresses else {})} for name in groups["all"]
    }
    return {"groups": groups, "hosts": hosts}


def plan_errors(kinds: Sequence[Mapping[str, Any]], operators: str) -> list[str]:
    """What no inventory tells: two kinds of one name, and operators that are no network; a sentence each."""
    return [*_of_kinds(kinds), *_of_operators(operators)]


def _of_kinds(kinds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name, count in Counter(str(kind["name"]) for kind in kinds).items():
        if count > 1:
            yield f"openstack_groups: found {count} kinds named {name}; allowed: each its own name"


def _of_operators(operators: str) -> Iterator[str]:
    try:
        network = ipaddress.IPv4Network(operators) if "/" in operators else None
    except ValueError:
        network = None
    if network is None:
        yield f"openstack_operators: found {operators!r}; allowed: an IPv4 network such as 203.0.113.7/32"
