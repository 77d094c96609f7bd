"""Ansible filters that expand the kinds of openstack_groups into servers and into the inventory of the planned site."""

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

EXAMPLE_NETWORKS = ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
"""Networks that exist in documentation only (RFC 5737, RFC 3849)."""


class FilterModule:
    """The filters of this file, as Ansible loads them."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names in templates."""
        return {"expand_servers": expand_servers, "planned_inventory": planned_inventory, "plan_errors": plan_errors}


def expand_servers(kinds: Sequence[Mapping[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """Return every server of every kind: its `name` (prefix, kind and a number from 1) and its `kind`."""
    return [
        {"name": f"{prefix}-{kind['name']}-{number}", "kind": dict(kind)}
        for kind in kinds
        for number in range(1, int(kind["count"]) + 1)
    ]


def planned_inventory(
    servers: Sequence[Mapping[str, Any]], variables: Mapping[str, Any], addresses: Mapping[str, str]
) -> dict[str, Any]:
    """Return the inventory that the planned servers would have.

    Args:
        servers: The servers, as `expand_servers` returns them.
        variables: Variables of the controller; those that begin with `site_` become variables of every host.
        addresses: Fixed addresses by server name, as far as they are known.

    Returns:
        `groups` with the hosts of each group, and `hosts` with the variables of each host.
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
    """Return the errors of a plan that the inventory check cannot find, one line each."""
    return [*_check_kinds(kinds), *_check_operators(operators)]


def _check_kinds(kinds: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name, count in Counter(str(kind["name"]) for kind in kinds).items():
        if count > 1:
            yield f"openstack_groups: found {count} kinds named {name}; give each kind its own name"


def _check_operators(operators: str) -> Iterator[str]:
    try:
        network = ipaddress.ip_network(operators) if "/" in operators else None
    except ValueError:
        network = None
    if network is None:
        yield f"openstack_operators: found {operators!r}; allowed: a network such as 203.0.113.7/32"
    elif any(network[0] in ipaddress.ip_network(example) for example in EXAMPLE_NETWORKS):
        yield (
            f"openstack_operators: found {operators}, which is an example; give the public address that you connect"
            " from (curl -s ifconfig.me), such as ADDRESS/32, or ADDRESS/128 for IPv6"
        )
