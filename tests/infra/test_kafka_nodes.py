"""Tests of Kafka's configuration on brokers and controllers, written by Ansible without hosts."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

Play = Callable[..., Any]
ROLE = Path(__file__).parents[2] / "infra" / "ansible" / "roles" / "kafka"
Configurations = Callable[..., Mapping[str, Mapping[str, str]]]


@pytest.fixture
def configurations(play: Play, tmp_path: Path) -> Configurations:
    """Return a function that writes server.properties of each host of the groups, and returns them by host."""

    def write(groups: Mapping[str, Sequence[str]], **of_host: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
        names = sorted({host for hosts in groups.values() for host in hosts})
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "site_name": "lab"}
        hosts = {name: {"site_address": f"{name}.lab", **of_host.get(name, {})} for name in names}
        children = {group: {"hosts": {name: {} for name in members}} for group, members in groups.items()}
        defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
        tasks = [
            {
                "ansible.builtin.template": {
                    "src": str(ROLE / "templates/server.properties"),
                    "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}",
                }
            }
        ]
        play_of_all = {
            "hosts": "all",
            "gather_facts": False,
            "vars_files": [str(ROLE / "vars" / "main.yml")],
            "tasks": tasks,
        }
        inventory, playbook = tmp_path / "hosts.json", tmp_path / "playbook.yml"
        inventory.write_text(json.dumps({"all": {"vars": defaults | local, "hosts": hosts, "children": children}}))
        playbook.write_text(json.dumps([play_of_all]))
        play(str(playbook), inventory)
        return {name: read_properties(tmp_path / name) for name in names}

    return write


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties in a file."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
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


def test_messages_may_lie_on_several_disks(configurations: Configurations) -> None:
    """Kafka places partitions on them in turn."""
    nodes = configurations({"kafka": ["b1"]}, b1={"kafka_data_folders": ["/disk1/kafka", "/disk2/kafka"]})
    assert nodes["b1"]["log.dirs"] == "/disk1/kafka,/disk2/kafka"
