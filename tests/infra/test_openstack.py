"""The OpenStack playbook against a real control plane in a container: present, present again, reached by inventory, absent.

No guest boots there (its compute driver is nova's own fake): each server has the address of a container that stands there, so that
the dynamic inventory leads Ansible to real hosts.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
MADE = ANSIBLE / "tests" / "openstack"
CLOUD = "172.30.99.20"
HOSTS = {"cloud-test-broker-1": "172.30.99.11", "cloud-test-framework-1": "172.30.99.12", "cloud-test-load-1": "172.30.99.13"}
ACCOUNT = {
    "OS_AUTH_URL": f"http://{CLOUD}:5000/v3",
    "OS_USERNAME": "admin",
    "OS_PASSWORD": "admin",
    "OS_PROJECT_NAME": "admin",
    "OS_USER_DOMAIN_NAME": "Default",
    "OS_PROJECT_DOMAIN_NAME": "Default",
    "OS_REGION_NAME": "RegionOne",
}
Done = subprocess.CompletedProcess[str]
Play = Callable[..., Any]
Hosts = Callable[..., Done]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]


def run(*words: str, seconds: float = 900) -> Done:
    return subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL)


def standing() -> dict[str, list[str]]:
    """By kind: the names of what stands in the cloud."""
    looked = run(sys.executable, str(MADE / "look.py"))
    assert looked.returncode == 0, looked.stderr[-2000:]
    return dict(json.loads(looked.stdout))


@pytest.fixture(scope="module", autouse=True)
def cloud(hosts: Hosts) -> Iterator[None]:
    """A control plane, and the containers that stand for its servers."""
    up = hosts("up", f"cloud={CLOUD}", *(f"{name}={address}" for name, address in HOSTS.items()))
    assert up.returncode == 0, up.stderr
    for step in ("install.sh", "configure.sh"):
        done = hosts("exec", "cloud", "bash", "-c", (MADE / step).read_text(), seconds=900)
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    os.environ.update(ACCOUNT)
    furnished = run(sys.executable, str(MADE / "furnish.py"))
    assert furnished.returncode == 0, furnished.stderr[-2000:]
    yield
    for name in ACCOUNT:
        os.environ.pop(name)
    hosts("down")


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    key = tmp_path_factory.mktemp("key") / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    return ["-e", f"@{MADE / 'site.yml'}", "-e", f"openstack_key={key}.pub"]


def test_a_site_is_made(play: Play, arguments: list[str]) -> None:
    """Network, group, key, volume and three servers, from nothing."""
    done = play("openstack.yml", Path("localhost,"), *arguments)
    assert done.changed["localhost"] >= 8


def test_a_second_time_changes_nothing(play: Play, arguments: list[str]) -> None:
    """What is there is found."""
    done = play("openstack.yml", Path("localhost,"), *arguments)
    assert done.changed == {"localhost": 0}


def test_the_inventory_leads_to_the_servers() -> None:
    """Groups come from the servers' metadata, addresses from the cloud."""
    inventory = ANSIBLE / "inventories" / "openstack" / "openstack.yml"
    done = run(str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(inventory), "--list")
    found = json.loads(done.stdout)
    assert found["kafka"]["hosts"] == ["cloud-test-broker-1"], done.stderr[-2000:]
    assert found["spark_workers"]["hosts"] == ["cloud-test-framework-1"]
    for address in ("ansible_host", "ansible_ssh_host", "site_address"):
        assert {name: told[address]["__ansible_unsafe"] for name, told in found["_meta"]["hostvars"].items()} == HOSTS


def test_real_hosts_are_reached(play: Play) -> None:
    """A role runs on all three through the cloud's inventory."""
    key = Path(os.environ.get("STREAM_BENCH_HOSTS") or Path.home() / ".cache/stream-bench/hosts") / "key"
    told = {"site_name": "cloud-test", "site_networks": ["172.30.99.0/24"], "ansible_user": "operator1"}
    told |= {"ansible_ssh_private_key_file": str(key), "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o LogLevel=ERROR"}
    inventory = ANSIBLE / "inventories" / "openstack" / "openstack.yml"
    done = play("brokers.yml", inventory, "-e", json.dumps(told), "--limit", "localhost,cloud-test-broker-1")
    assert done.changed["cloud-test-broker-1"]


def test_nothing_of_the_site_is_left(play: Play, arguments: list[str]) -> None:
    """Absent removes what present has made, and nothing else."""
    theirs = {"networks": ["public", "somebody-elses"], "security groups": ["somebody-elses"]}
    assert sum(map(len, standing().values())) > sum(map(len, theirs.values()))
    play("openstack.yml", Path("localhost,"), *arguments, "-e", "openstack_state=absent")
    assert {kind: names for kind, names in standing().items() if names} == theirs


def test_absent_twice_changes_nothing(play: Play, arguments: list[str]) -> None:
    """What is gone is gone."""
    done = play("openstack.yml", Path("localhost,"), *arguments, "-e", "openstack_state=absent")
    assert done.changed == {"localhost": 0}
