"""Tests of the Vagrantfile and its inventory: a machine for each host, each with its own address."""

import ipaddress
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
VIRTUALBOX = ipaddress.ip_network("192.168.56.0/21")  # the range that VirtualBox allows for host-only networks


def hosts_in(group: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and address of every host entry with an address; a host with two such entries is listed twice."""
    own = [
        (name, variables["ansible_host"])
        for name, variables in (group.get("hosts") or {}).items()
        if "ansible_host" in (variables or {})
    ]
    return own + [host for child in (group.get("children") or {}).values() for host in hosts_in(child or {})]


def names_in(group: dict[str, Any]) -> set[str]:
    below = [names_in(child or {}) for child in (group.get("children") or {}).values()]
    return set(group.get("hosts") or {}).union(*below)


def test_the_vagrantfile_is_valid_ruby() -> None:
    """Ruby finds no syntax error in the Vagrantfile."""
    ruby = shutil.which("ruby")
    if ruby is None:
        pytest.skip("ruby is not installed; apt-get install ruby")
    process = subprocess.run(
        [ruby, "-c", "Vagrantfile"], cwd=ANSIBLE, capture_output=True, text=True, timeout=60, check=False
    )
    assert (process.returncode, process.stdout.strip()) == (0, "Syntax OK"), process.stderr


def test_every_host_of_the_inventory_becomes_a_machine() -> None:
    """The Vagrantfile reads an inventory in which every host has one address of its own in an allowed network."""
    named = re.search(r"File\.join\(__dir__, ([^)]*)\)", (ANSIBLE / "Vagrantfile").read_text())
    assert named
    inventory = yaml.safe_load(ANSIBLE.joinpath(*re.findall(r"'([^']+)'", named[1])).read_text())["all"]
    hosts = hosts_in(inventory)
    assert {name for name, _ in hosts} == names_in(inventory)
    assert len(hosts) == len(dict(hosts)) == len({address for _, address in hosts})
    networks = [ipaddress.ip_network(network) for network in inventory["vars"]["site_networks"]]
    for name, address in hosts:
        assert re.fullmatch(r"[a-z0-9-]+", name)
        assert ipaddress.ip_address(address) in VIRTUALBOX
        assert any(ipaddress.ip_address(address) in network for network in networks)
