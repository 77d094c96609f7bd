"""Ansible filter that checks whether an inventory describes a valid site."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

GROUPS = {
    "brokers": (),
    "frameworks": (),
    "load": (),
    "kafka": (),
    "kafka_controllers": (1, 3, 5),
    "pulsar": (1, 3),
    "spark_master": (1,),
    "spark_workers": (),
    "flink_jobmanager": (1,),
    "flink_taskmanagers": (),
    "harmonicio_master": (1,),
    "harmonicio_workers": (),
    "nfs": (1,),
    "monitoring": (1,),
    "load_master": (1,),
    "load_workers": (),
}
"""The groups of a site with the allowed numbers of hosts; () allows any number."""
FRAMEWORKS = {
    "spark_master": "spark_workers",
    "flink_jobmanager": "flink_taskmanagers",
    "harmonicio_master": "harmonicio_workers",
}
"""For each framework the group of its master and the one of its workers: neither has hosts without the other."""
REQUIRED_GROUPS = (
    *FRAMEWORKS.items(),
    *((workers, master) for master, workers in FRAMEWORKS.items()),
    ("load_workers", "load_master"),
    ("kafka_controllers", "kafka"),
)
"""Pairs of groups: if the first has hosts, the second must have some."""
PORTS = {
    "kafka": {"kafka_port": 9092, "kafka_controller_port": 9093},
    "kafka_controllers": {"kafka_controller_port": 9093},
    "pulsar": {
        "pulsar_store_port": 2181,
        "pulsar_store_peer_port": 2888,
        "pulsar_store_election_port": 3888,
        "pulsar_bookie_port": 3181,
        "pulsar_port": 6650,
        "pulsar_web_port": 8080,
    },
    "spark_master": {"spark_master_port": 7077, "spark_master_ui_port": 8080, "spark_history_port": 18080},
    "spark_workers": {"spark_worker_port": 7078, "spark_worker_ui_port": 8081, "spark_executor_ports": "7140-7155"},
    "flink_jobmanager": {
        "flink_rest_port": 8083,
        "flink_rpc_port": 6123,
        "flink_blob_port": 6124,
        "flink_metrics_ports": "6125-6126",
    },
    "flink_taskmanagers": {
        "flink_worker_port": 6122,
        "flink_data_port": 6121,
        "flink_metrics_ports": "6125-6126",
    },
    "harmonicio_master": {"harmonicio_master_port": 8090, "harmonicio_data_port": 8091},
    "harmonicio_workers": {"harmonicio_worker_port": 8092, "harmonicio_pe_ports": [9000, 9100]},
    "nfs": {"nfs_port": 2049},
    "monitoring": {"prometheus_port": 9090},
    "load_master": {
        "load_generator_worker_port": 5557,
        "load_generator_local_port": 5556,
        "load_generator_driver_ports": "7100-7115",
        "load_generator_block_ports": "7120-7135",
        "load_generator_source_ports": "7200-7215",
    },
    "load_workers": {"load_generator_local_port": 5556},
    "all": {"node_exporter_port": 9100},
}
"""Listening ports of each group: the variable and the default of its role.

A port, a range with its last port ("7140-7155"), or a list of the first port and the one after the last.
"""
VARIABLES = {
    "site_name": "a name of letters, digits, dots and dashes",
    "site_networks": "a list of networks such as 10.0.0.0/24",
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
BUILT_IN_GROUPS = ("all", "ungrouped")


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Any]:
        """Return the filter by its name in templates."""
        return {"inventory_errors": inventory_errors}


def inventory_errors(groups: Mapping[str, Sequence[str]], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the errors of an inventory, one line each with the value that was found and the allowed ones.

    Args:
        groups: Hosts of each group, as Ansible's variable `groups`.
        hostvars: Variables of each host.

    Returns:
        One message for each error; an empty list if the inventory is valid.
    """
    members = {name: [str(host) for host in hosts] for name, hosts in groups.items()}
    hosts = {host: hostvars[host] for host in members.get("all", [])}
    if not hosts:
        return ["the inventory has no hosts; is -i given, and does the file exist?"]
    return [
        *_check_groups(members),
        *_check_hosts(members, hosts),
        *_check_security(members, hosts),
        *_check_ports(members, hosts),
        *_check_variables(hosts),
        *_check_addresses(hosts),
    ]


def _check_groups(groups: Mapping[str, list[str]]) -> Iterator[str]:
    for name, hosts in groups.items():
        if name not in GROUPS and name not in BUILT_IN_GROUPS and not _is_auxiliary(name, hosts, groups):
            yield f"group {name}: unknown; allowed: {', '.join(GROUPS)}{_suggestion(name, GROUPS)}"
    for name, counts in GROUPS.items():
        count = len(groups.get(name, []))
        if counts and count and count not in counts:
            yield f"group {name}: found {count} hosts; allowed: {' or '.join(map(str, counts))}"
    for group, required in REQUIRED_GROUPS:
        if groups.get(group) and not groups.get(required):
            yield f"group {required}: found no host; the group {group} needs one"
    if not groups.get("load_master"):
        yield "group load_master: found no host; the harness needs one to run on"
    if not any(groups.get(name) for name in ("kafka", "pulsar", *FRAMEWORKS)):
        yield f"the inventory has neither a broker (kafka, pulsar) nor a framework ({', '.join(FRAMEWORKS)})"


def _is_auxiliary(name: str, hosts: list[str], groups: Mapping[str, list[str]]) -> bool:
    """Return whether a group only contains hosts of the site's groups, like the groups that a cloud adds."""
    site_hosts = {host for known in GROUPS for host in groups.get(known, [])}
    return bool(hosts) and set(hosts) <= site_hosts and not difflib.get_close_matches(name, GROUPS, 1, 0.8)


def _check_hosts(groups: Mapping[str, list[str]], hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    roles = {
        "brokers": {host for name in ("kafka", "kafka_controllers", "pulsar") for host in groups.get(name, [])},
        "frameworks": {host for pair in FRAMEWORKS.items() for name in pair for host in groups.get(name, [])},
        "load": {host for name in ("load_master", "load_workers") for host in groups.get(name, [])},
        "monitoring": set(groups.get("monitoring", [])),
    }
    site_hosts = {host for name in GROUPS for host in groups.get(name, [])}
    for host in sorted(hosts):
        if host in GROUPS:
            yield f"host {host}: has the name of a group; rename the host"
        if host not in site_hosts:
            yield f"host {host}: is in no group of a site; allowed: {', '.join(GROUPS)}"
        host_roles = [role for role, members in roles.items() if host in members]
        if len(host_roles) > 1 and hosts[host].get("site_shared_hosts") is not True:
            yield (
                f"host {host}: is in {' and '.join(host_roles)}, which would disturb each other's measurements;"
                " use separate hosts, or set site_shared_hosts: true"
            )


def _check_security(groups: Mapping[str, list[str]], hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    if any(hosts[host].get("site_secured") is True for host in groups.get("flink_jobmanager", [])):
        yield (
            "group flink_jobmanager: Flink has neither TLS nor passwords here, so that a secured site cannot have it;"
            " remove the group or site_secured"
        )


def _check_ports(groups: Mapping[str, list[str]], hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for host, variables in sorted(hosts.items()):
        taken: dict[int, tuple[str, str]] = {}
        for group in (group for group in PORTS if host in groups.get(group, [])):
            for name, default in PORTS[group].items():
                owners = {port: taken.setdefault(port, (group, name)) for port in _ports(variables.get(name, default))}
                clash = next((port for port, (_, owner) in owners.items() if owner != name), None)
                if clash is not None:
                    other_group, other_name = owners[clash]
                    yield (
                        f"host {host}: {other_group} ({other_name}) and {group} ({name}) both use port {clash};"
                        " change one of them"
                    )


def _ports(value: Any) -> Sequence[int]:
    """Return the ports of a value as in PORTS; none of one that is no port, which its role refuses."""
    try:
        if isinstance(value, str):
            first, _, last = value.partition("-")
            return range(int(first), int(last or first) + 1)
        return range(*map(int, value)) if isinstance(value, Sequence) else [int(value)]
    except (TypeError, ValueError):
        return []


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
        if network.version != 4:
            yield f"site_networks: found {str(network)!r}, which is IPv6; allowed: IPv4 networks"
        elif network.prefixlen == 0:
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


def _check_addresses(hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    taken: dict[str, str] = {}
    for host, variables in sorted(hosts.items()):
        address = str(variables.get("site_address") or variables.get("ansible_host") or host)
        if address in taken:
            yield (
                f"host {host}: has the same address {address} as host {taken[address]}; give each host its own address"
            )
        taken.setdefault(address, host)
        number, networks = _address(address), [network for network in _networks(variables) if network.version == 4]
        if len(hosts) > 1 and (address == "localhost" or (number and number.is_loopback)):
            yield f"host {host}: site_address is {address}, which other hosts cannot reach"
        elif number and number.version != 4:
            yield f"host {host}: its address {address} is IPv6; allowed: an IPv4 address"
        elif number and networks and not any(number in network for network in networks):
            yield f"host {host}: its address {address} is in none of site_networks ({', '.join(map(str, networks))})"


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
