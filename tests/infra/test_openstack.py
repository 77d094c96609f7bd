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
SITE = "cloud-test"
WITHOUT_FRAMEWORK = [
    {"name": "broker", "count": 1, "flavor": "m1.large", "volume_gb": 1, "groups": ["kafka"]},
    {"name": "load", "count": 1, "flavor": "m1.medium", "groups": ["load_master"], "floating_ip": True},
]
THEIRS = {
    "servers": ["cloud-test-other"],
    "networks": ["public", "other-site"],
    "security groups": ["other-site"],
    "addresses": ["203.0.113.200"],
}
HOSTS = {
    "cloud-test-broker-1": "172.30.99.11",
    "cloud-test-framework-1": "172.30.99.12",
    "cloud-test-load-1": "172.30.99.13",
}
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
    return subprocess.run(
        words, cwd=ANSIBLE, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
    )


def deployed() -> dict[str, list[str]]:
    """By kind: the names of what stands in the cloud."""
    looked = run(sys.executable, str(MADE / "list_resources.py"))
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
    furnished = run(sys.executable, str(MADE / "populate.py"))
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


def test_somebody_elses_things_stand_in_nobodys_way(play: Play, arguments: list[str]) -> None:
    """A network that has the name of another site is neither taken nor removed; all that is said of it is one line."""
    for state in ("present", "absent"):
        named = ["-e", "openstack_name=other-site", "-e", f"openstack_state={state}"]
        done = play("openstack.yml", Path("localhost,"), *arguments, *named, refused=True)
        assert "network other-site: is there already, and not made for this site" in done.said
        assert "security group other-site: is there already, and not made for this site" in done.said
        assert done.changed == {"localhost": 0}


def test_a_plan_that_makes_no_site_costs_nothing(play: Play, arguments: list[str]) -> None:
    """A misspelt group is refused before the cloud is looked at."""
    kinds = [*WITHOUT_FRAMEWORK, {"name": "more", "count": 1, "flavor": "m1.large", "groups": ["kafak"]}]
    done = play(
        "openstack.yml", Path("localhost,"), *arguments, "-e", json.dumps({"openstack_groups": kinds}), refused=True
    )
    assert "group kafak: unknown" in done.said
    assert "Networks of the site's name" not in done.said


def test_a_server_that_is_asked_for_no_longer_is_named(play: Play, arguments: list[str]) -> None:
    """Nothing is changed, and nothing is removed in silence."""
    done = play(
        "openstack.yml",
        Path("localhost,"),
        *arguments,
        "-e",
        json.dumps({"openstack_groups": WITHOUT_FRAMEWORK}),
        refused=True,
    )
    assert "server cloud-test-framework-1: is the site's, but no longer asked for" in done.said
    assert done.changed == {"localhost": 0}


def listed() -> dict[str, Any]:
    """What the inventory says."""
    inventory = ANSIBLE / "inventories" / "openstack" / "openstack.yml"
    done = run(
        str(Path(sys.executable).with_name("ansible-inventory")),
        "-i",
        str(inventory),
        "--list",
        "-e",
        f"site_name={SITE}",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def address_outside() -> str:
    """Of the load, as the inventory has it."""
    return str(listed()["_meta"]["hostvars"]["cloud-test-load-1"]["ansible_host"]["__ansible_unsafe"])


def test_the_inventory_leads_to_the_servers() -> None:
    """Groups come from the servers' metadata, addresses from the cloud; a server that is not the site's is not in it."""
    found = listed()
    assert found["kafka"]["hosts"] == ["cloud-test-broker-1"]
    assert found["spark_workers"]["hosts"] == ["cloud-test-framework-1"]
    told = found["_meta"]["hostvars"]
    assert {name: variables["site_address"]["__ansible_unsafe"] for name, variables in told.items()} == HOSTS
    assert told["cloud-test-broker-1"]["ansible_host"]["__ansible_unsafe"] == HOSTS["cloud-test-broker-1"]
    assert len(told["cloud-test-broker-1"]["volume_devices"]) == 3


def test_an_address_of_the_outside_world_is_a_new_one() -> None:
    """Not the one that was free: that may be kept for something else."""
    assert address_outside().startswith("203.0.113.")
    assert [address_outside()] == [address for address in deployed()["addresses"] if address not in THEIRS["addresses"]]


@pytest.fixture
def way_in(hosts: Hosts) -> Iterator[None]:
    """The load's address of the outside world leads to its container, as the cloud's router would have it."""
    address = address_outside()
    assert hosts("exec", "cloud-test-load-1", "ip", "address", "add", f"{address}/32", "dev", "lo").returncode == 0
    assert run("ip", "route", "add", f"{address}/32", "via", HOSTS["cloud-test-load-1"]).returncode == 0
    yield
    run("ip", "route", "del", f"{address}/32")


def test_real_hosts_are_reached(play: Play, way_in: None) -> None:
    """A role runs on a host without an address of the outside world, through the one that has it."""
    key = Path(os.environ.get("STREAM_BENCH_HOSTS") or Path.home() / ".cache/stream-bench/hosts") / "key"
    told: dict[str, Any] = {"site_name": SITE, "site_networks": ["172.30.99.0/24"], "ansible_user": "operator1"}
    told |= {"ansible_ssh_private_key_file": str(key), "volume_devices": []}  # a container has no volume
    told["openstack_ssh"] = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    inventory = ANSIBLE / "inventories" / "openstack" / "openstack.yml"
    done = play("brokers.yml", inventory, "-e", json.dumps(told), "--limit", "cloud-test-broker-1", "-vvv")
    assert done.changed["cloud-test-broker-1"]
    assert f"operator1@{address_outside()}" in done.said


def test_nothing_of_the_site_is_left(play: Play, arguments: list[str]) -> None:
    """Absent removes what present has made, also what is asked for no longer, and nothing else."""
    assert sum(map(len, deployed().values())) > sum(map(len, THEIRS.values()))
    fewer = json.dumps({"openstack_groups": WITHOUT_FRAMEWORK, "openstack_state": "absent"})
    play("openstack.yml", Path("localhost,"), *arguments, "-e", fewer)
    assert {kind: names for kind, names in deployed().items() if names} == THEIRS


def test_absent_twice_changes_nothing(play: Play, arguments: list[str]) -> None:
    """What is gone is gone."""
    done = play("openstack.yml", Path("localhost,"), *arguments, "-e", "openstack_state=absent")
    assert done.changed == {"localhost": 0}
