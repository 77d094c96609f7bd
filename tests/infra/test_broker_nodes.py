"""Tests of the configuration of brokers, written by Ansible without hosts."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

Play = Callable[..., Any]
ROLES = Path(__file__).parents[2] / "infra" / "ansible" / "roles"
Configurations = Callable[..., Mapping[str, Mapping[str, str]]]


@pytest.fixture
def write(play: Play, tmp_path: Path) -> Callable[..., Mapping[str, str]]:
    """Return a function that writes a template for each host of the groups, and returns the texts by host."""

    def run(
        template: str, role: str, groups: Mapping[str, Sequence[str]], variables: Mapping[str, Any], **of_host: Any
    ) -> Mapping[str, str]:
        names = sorted({host for hosts in groups.values() for host in hosts})
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "site_name": "lab"}
        hosts = {name: {"site_address": f"{name}.lab", **of_host.get(name, {})} for name in names}
        children = {group: {"hosts": {name: {} for name in members}} for group, members in groups.items()}
        defaults = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
        written = {"src": str(ROLES / template), "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}"}
        tasks = [{"ansible.builtin.template": written}]
        play_of_all = {
            "hosts": "all",
            "gather_facts": False,
            "vars_files": [str(ROLES / role / "vars" / "main.yml")],
            "tasks": tasks,
        }
        inventory, playbook = tmp_path / "hosts.json", tmp_path / "playbook.yml"
        of_all = {**defaults, **local, **variables}
        inventory.write_text(json.dumps({"all": {"vars": of_all, "hosts": hosts, "children": children}}))
        playbook.write_text(json.dumps([play_of_all]))
        play(str(playbook), inventory)
        return {name: (tmp_path / name).read_text() for name in names}

    return run


@pytest.fixture
def configurations(write: Callable[..., Mapping[str, str]]) -> Configurations:
    """Return a function that writes server.properties of each host of the groups, and returns them by host."""

    def properties(groups: Mapping[str, Sequence[str]], **of_host: Any) -> Mapping[str, Mapping[str, str]]:
        texts = write("kafka/templates/server.properties", "kafka", groups, {}, **of_host)
        return {name: read_properties(text) for name, text in texts.items()}

    return properties


def read_properties(text: str) -> dict[str, str]:
    """Return the properties in a text."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_the_first_three_of_five_brokers_are_the_controllers(configurations: Configurations) -> None:
    """The others are brokers only; every node knows the same three voters, and the rack is the host's."""
    nodes = configurations({"kafka": ["b1", "b2", "b3", "b4", "b5"]}, b5={"site_rack": "r2"})
    assert [nodes[name]["process.roles"] for name in sorted(nodes)] == ["broker,controller"] * 3 + ["broker"] * 2
    voters = "1@b1.lab:9093,2@b2.lab:9093,3@b3.lab:9093"
    assert {node["controller.quorum.voters"] for node in nodes.values()} == {voters}
    assert nodes["b4"]["listeners"] == "CLIENTS://b4.lab:9092"
    assert (nodes["b5"]["broker.rack"], "broker.rack" in nodes["b1"]) == ("r2", False)
    assert nodes["b1"]["default.replication.factor"] == "3"


def test_one_broker_of_two_is_the_controller(configurations: Configurations) -> None:
    """Two controllers would both be needed all the time."""
    nodes = configurations({"kafka": ["b1", "b2"]})
    assert [nodes[name]["process.roles"] for name in ("b1", "b2")] == ["broker,controller", "broker"]
    assert nodes["b2"]["controller.quorum.voters"] == "1@b1.lab:9093"


def test_controllers_may_have_hosts_of_their_own(configurations: Configurations) -> None:
    """Their numbers do not depend on how many brokers there are, and clients do not reach them."""
    nodes = configurations({"kafka": ["b1"], "kafka_controllers": ["c1", "c2", "c3"]})
    assert nodes["b1"]["process.roles"] == "broker"
    assert {nodes[name]["process.roles"] for name in ("c1", "c2", "c3")} == {"controller"}
    assert [nodes[name]["node.id"] for name in ("b1", "c1", "c3")] == ["1", "1001", "1003"]
    assert nodes["b1"]["controller.quorum.voters"] == "1001@c1.lab:9093,1002@c2.lab:9093,1003@c3.lab:9093"
    assert nodes["c1"]["listeners"] == "CONTROLLER://c1.lab:9093"
    assert "advertised.listeners" not in nodes["c1"]


def test_ipv6_addresses_have_brackets(configurations: Configurations) -> None:
    """Those of listeners, and those of the voters."""
    node = configurations({"kafka": ["b1"]}, b1={"site_address": "fd00::1"})["b1"]
    assert node["listeners"] == "CLIENTS://[fd00::1]:9092,CONTROLLER://[fd00::1]:9093"
    assert node["advertised.listeners"] == "CLIENTS://[fd00::1]:9092"
    assert node["controller.quorum.voters"] == "1@[fd00::1]:9093"


def test_messages_may_lie_on_several_disks(configurations: Configurations) -> None:
    """Kafka places partitions on them in turn."""
    nodes = configurations({"kafka": ["b1"]}, b1={"kafka_data_folders": ["/disk1/kafka", "/disk2/kafka"]})
    assert nodes["b1"]["log.dirs"] == "/disk1/kafka,/disk2/kafka"


def test_a_bookie_listens_at_its_own_address(write: Callable[..., Mapping[str, str]]) -> None:
    """BookKeeper takes the advertised address where an interface is named, and all addresses where none is."""
    texts = write("pulsar/templates/bookie.conf", "pulsar", {"pulsar": ["p1"]}, {"pulsar_bookie_direct": "512m"})
    options = read_properties(texts["p1"])
    assert (options["listeningInterface"], options["advertisedAddress"]) == ("default", "p1.lab")


@pytest.mark.parametrize(
    ("last", "allowed"),
    [("10.0.0.3", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]), ("p3.lab", ["10.0.0.0/24"])],
    ids=["addresses", "a name"],
)
def test_only_pulsars_hosts_reach_its_store(
    write: Callable[..., Mapping[str, str]], last: str, allowed: list[str]
) -> None:
    """Names cannot be written into the firewall: then the networks of the site reach it."""
    hosts = {
        name: {"site_address": address} for name, address in (("p1", "10.0.0.1"), ("p2", "10.0.0.2"), ("p3", last))
    }
    rule = {
        "firewall_networks": "{{ pulsar_store_networks }}",
        "firewall_ports": ["2181"],
        "firewall_protocol": "tcp",
        "site_networks": ["10.0.0.0/24"],
    }
    texts = write("firewall/templates/rule.nft", "pulsar", {"pulsar": list(hosts)}, rule, **hosts)
    rules = [line for line in texts["p1"].splitlines() if line.startswith("add")]
    opened = "add rule inet stream_bench input ip saddr {} tcp dport {{ 2181 }} accept"
    assert rules == [opened.format(network) for network in allowed]
