"""Ansible filter that checks whether the groups of an inventory describe a valid site."""

from __future__ import annotations

import difflib
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
BUILT_IN_GROUPS = ("all", "ungrouped")


class FilterModule:
    """The filter of this file, as Ansible loads it."""

    def filters(self) -> dict[str, Any]:
        """Return the filter by its name in templates."""
        return {"group_errors": group_errors}


def group_errors(groups: Mapping[str, Sequence[str]], hostvars: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the groups of an inventory, and with the ports of their hosts.

    Args:
        groups: Hosts of each group, as Ansible's variable `groups`.
        hostvars: Variables of each host.

    Returns:
        One message for each error, with what was found and what is allowed; an empty list if there is none.
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


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    matches = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {matches[0]}?" if matches else ""
