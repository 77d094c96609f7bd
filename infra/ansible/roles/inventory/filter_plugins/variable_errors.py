"""Ansible filter that checks the variables of an inventory's hosts."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

VARIABLES = {
    "site_name": "a name of letters, digits, dots and dashes",
    "site_networks": "a list of networks such as 10.0.0.0/24 or fd00::/64",
    "site_address": "an address or name at which the other hosts reach this one",
    "site_secured": "true or false",
    "site_secrets": "a folder on the controller",
    "site_mirror": "an http, https or file URL",
    "site_bandwidth": "a bandwidth such as 1 Gbit/s",
    "site_disk": "a bandwidth such as 500 MB/s",
    "site_cores": "a whole number, at least 1",
    "site_shared_hosts": "true or false",
    "site_logs": "a folder on the controller",
    "site_rack": "the name of a host's rack",
}
"""The variables of a site, with their allowed values in words."""
SECRETS = {"kafka_password": 12, "spark_password": 12, "harmonicio_secret": 12, "pulsar_signing_key": 32}
"""Secrets that an inventory may give, which the roles make otherwise, with their least numbers of characters."""
PINNED = {
    "kafka_version": "bench/services/jars.lock",
    "pulsar_version": "bench/services/jars.lock",
    "spark_version": "constraints.txt",
    "flink_version": "frameworks/flink/requirements.lock",
    "harmonicio_version": "pyproject.toml",
    "load_generator_version": "pyproject.toml",
}
"""Variables that no inventory has, because what is installed does not follow them; the files that pin the versions."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-]{0,62}")
BANDWIDTH = re.compile(r"\d+(\.\d*)?\s*([kMG]?bit/s|[kMG]?B/s)")


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Any]:
        """Return the filter by its name in templates."""
        return {"variable_errors": variable_errors}


def variable_errors(groups: Mapping[str, Sequence[str]], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the variables and addresses of an inventory's hosts.

    Args:
        groups: Hosts of each group, as Ansible's variable `groups`.
        hostvars: Variables of each host.

    Returns:
        One message for each error, with what was found and what is allowed; an empty list if there is none.
    """
    hosts = {str(host): hostvars[host] for host in groups.get("all", [])}
    return [*_check_variables(hosts), *_check_addresses(hosts, groups.get("pulsar", []))]


def _check_variables(hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    reported = set()
    for host, variables in sorted(hosts.items()):
        for line in _check_host_variables(variables):
            if line not in reported:
                reported.add(line)
                yield line if line.startswith("site_") else f"host {host}: {line}"


def _check_host_variables(variables: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(str(name) for name in variables if str(name).startswith("site_")):
        if name not in VARIABLES and not name.startswith("site_file_"):  # a variable of the role site_file
            yield f"{name}: an unknown variable; allowed: {', '.join(VARIABLES)}{_suggestion(name, VARIABLES)}"
    yield from _pinned_versions(variables)
    for name, allowed in VARIABLES.items():
        value = variables.get(name)
        if value is None and name not in ("site_name", "site_networks"):
            continue
        if value is None or not _is_valid(name, value):
            yield f"{name}: found {'nothing' if value is None else repr(value)}; allowed: {allowed}"
    yield from _invalid_secrets(variables)
    for network in _networks(variables):
        if network.prefixlen == 0:
            yield (
                f"site_networks: found {str(network)!r}, which is the whole internet;"
                " name the networks of the site's hosts"
            )


def _invalid_secrets(variables: Mapping[str, Any]) -> Iterator[str]:
    for name, characters in SECRETS.items():
        if name in variables and not _is_secret(variables[name], characters):
            yield (
                f"{name}: found a value that is too short or has other characters; allowed: a text of at least"
                f" {characters} characters of ASCII, without quotes and backslashes, and without a blank at either end"
            )


def _pinned_versions(variables: Mapping[str, Any]) -> Iterator[str]:
    for name in (name for name in PINNED if name in variables):
        yield f"{name}: versions are pinned by this checkout ({PINNED[name]}); remove the variable"


def _is_valid(name: str, value: Any) -> bool:
    if name in ("site_secured", "site_shared_hosts"):
        return isinstance(value, bool)
    if name == "site_cores":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if name == "site_networks":
        return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and all(map(_network, value))
    text = value if isinstance(value, str) else ""
    rules = {
        "site_name": bool(NAME.fullmatch(text)),
        "site_bandwidth": bool(BANDWIDTH.fullmatch(text)),
        "site_disk": bool(BANDWIDTH.fullmatch(text)),
        "site_mirror": text.startswith(("http://", "https://", "file:///")),
    }
    return rules.get(name, bool(text))


def _is_secret(value: Any, min_characters: int) -> bool:
    text = value if isinstance(value, str) else ""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not set(text) & set("\"'\\")
    return is_plain and len(text) >= min_characters


def _check_addresses(hosts: Mapping[str, Mapping[str, Any]], pulsar: Sequence[str]) -> Iterator[str]:
    taken: dict[str, str] = {}
    for host, variables in sorted(hosts.items()):
        address = str(variables.get("site_address") or variables.get("ansible_host") or host)
        number, networks = _address(address), _networks(variables)
        owner = taken.setdefault(str(number or address), host)
        if owner != host:
            yield f"host {host}: has the same address {address} as host {owner}; give each host its own address"
        if len(hosts) > 1 and (address == "localhost" or (number and number.is_loopback)):
            yield f"host {host}: site_address is {address}, which other hosts cannot reach"
        elif ":" in address and (refusal := _ipv6_refusal(address, number, is_pulsar=host in pulsar)):
            yield f"host {host}: {refusal}"
        elif number and networks and not any(number in network for network in networks):
            yield f"host {host}: its address {address} is in none of site_networks ({', '.join(map(str, networks))})"


def _ipv6_refusal(address: str, number: Any, *, is_pulsar: bool) -> str:
    """Return why no service can have an address with a colon; an empty text if it can."""
    if number is None:
        return f"found the address {address}; allowed: an address without brackets and port, or a name"
    if number.is_link_local:
        return f"its address {address} is link-local, which URLs cannot name; use another one"
    if is_pulsar:
        return (
            f"its address {address} is IPv6, which Pulsar's BookKeeper cannot read (apache/bookkeeper, issue 1513);"
            " set site_address to a name of the host"
        )
    return ""


def _networks(variables: Mapping[str, Any]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    texts = variables.get("site_networks")
    return [network for text in texts if (network := _network(text))] if _is_valid("site_networks", texts) else []


def _network(text: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(str(text)) if "/" in str(text) else None
    except ValueError:
        return None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    matches = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {matches[0]}?" if matches else ""
