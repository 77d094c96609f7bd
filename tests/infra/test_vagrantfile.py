"""The Vagrantfile can be read, and what it takes from its inventory is there: a machine for each host, with its own address."""

import ipaddress
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
VIRTUALBOX = ipaddress.ip_network("192.168.56.0/21")  # where its manual lets private networks be


def hosts_in(group: dict[str, Any]) -> list[tuple[str, str]]:
    """Each host that has an address, as often as it has one."""
    here = [
        (name, told["ansible_host"])
        for name, told in (group.get("hosts") or {}).items()
        if "ansible_host" in (told or {})
    ]
    return here + [host for child in (group.get("children") or {}).values() for host in hosts_in(child or {})]


def names_in(group: dict[str, Any]) -> set[str]:
    below = [names_in(child or {}) for child in (group.get("children") or {}).values()]
    return set(group.get("hosts") or {}).union(*below)


def test_it_is_ruby() -> None:
    """Where Ruby is installed it finds no mistake."""
    ruby = shutil.which("ruby")
    if ruby is None:
        pytest.skip("ruby is not installed; apt-get install ruby")
    done = subprocess.run(
        [ruby, "-c", "Vagrantfile"], cwd=ANSIBLE, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "Syntax OK"), done.stderr


def test_each_host_of_its_inventory_is_a_machine() -> None:
    """It reads the inventory that lies there, whose hosts have each one address, in networks that a machine may have."""
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
