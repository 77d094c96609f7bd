"""Tests of openstack.yml against a real OpenStack control plane in a container. They need root and tests/hosts.sh.

The control plane uses nova's fake compute driver, so no server boots. Each server has the address of a test container,
so that the dynamic inventory leads Ansible to real hosts.
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
OPENSTACK = ANSIBLE / "tests" / "openstack"
CLOUD = "172.30.99.20"
SITE = "cloud-test"
WITHOUT_FRAMEWORK = [
    {"name": "broker", "count": 1, "flavor": "m1.large", "volume_gb": 1, "groups": ["kafka"]},
    {"name": "load", "count": 1, "flavor": "m1.medium", "groups": ["load_master"], "floating_ip": True},
]
OTHER_RESOURCES = {
    "servers": ["cloud-test-other"],
    "networks": ["other-site", "public"],
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
Process = subprocess.CompletedProcess[str]
Play = Callable[..., Any]
Hosts = Callable[..., Process]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]


def run(*arguments: str, seconds: float = 900) -> Process:
    return subprocess.run(
        arguments, cwd=ANSIBLE, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
    )


def list_resources() -> dict[str, list[str]]:
    """Return the names of all resources in the cloud, by kind."""
    process = run(sys.executable, str(OPENSTACK / "list_resources.py"))
    assert process.returncode == 0, process.stderr[-2000:]
    return dict(json.loads(process.stdout))


@pytest.fixture(scope="module", autouse=True)
def cloud(hosts: Hosts) -> Iterator[None]:
    """Start the control plane and the containers that act as its servers; stop them afterwards."""
    up = hosts("up", f"cloud={CLOUD}", *(f"{name}={address}" for name, address in HOSTS.items()))
    assert up.returncode == 0, up.stderr
    for step in ("install.sh", "configure.sh"):
        process = hosts("exec", "cloud", "bash", "-c", (OPENSTACK / step).read_text(), seconds=900)
        assert process.returncode == 0, (process.stdout + process.stderr)[-2000:]
    os.environ.update(ACCOUNT)
    populated = run(sys.executable, str(OPENSTACK / "populate.py"))
    assert populated.returncode == 0, populated.stderr[-2000:]
    yield
    for name in ACCOUNT:
        os.environ.pop(name)
    hosts("down")


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the arguments of openstack.yml: the test site, with a new SSH key."""
    key = tmp_path_factory.mktemp("key") / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    return ["-e", f"@{OPENSTACK / 'site.yml'}", "-e", f"openstack_key={key}.pub"]


def test_what_the_cloud_cannot_create_is_reported_before_anything_is_created(play: Play, arguments: list[str]) -> None:
    """Each problem has a line with the existing names, and the cloud is as before."""
    kinds = [
        {"name": "broker", "count": 1, "flavor": "m1.larg", "groups": ["kafka"]},
        {"name": "framework", "count": 8, "flavor": "m1.large", "volume_gb": 300, "groups": ["spark_workers"]},
        {"name": "master", "count": 1, "flavor": "m1.diskless", "groups": ["spark_master"]},
        {"name": "load", "count": 6, "flavor": "m1.large", "groups": ["load_workers"]},
        {"name": "load-master", "count": 1, "flavor": "m1.large", "groups": ["load_master"]},
    ]
    plan = {"openstack_groups": kinds, "openstack_image": "debian-21", "openstack_external_network": "publik"}
    plan |= {"openstack_availability_zone": "south"}
    result = play("openstack.yml", Path("localhost,"), *arguments, "-e", json.dumps(plan), expect_failure=True)
    for line in (
        "openstack_image: debian-21 does not exist; did you mean debian-12? existing: debian-12",
        "kind broker: flavor m1.larg does not exist; did you mean m1.large? existing: m1.diskless, m1.large, m1.medium",
        "kind master: flavor m1.diskless has no disk; set boot_volume_gb",
        "openstack_availability_zone: south does not exist; existing: nova",
        "openstack_external_network: publik does not exist; did you mean public? existing: public",
        "quota of servers: 17 more needed, 9 left in the project",
        "quota of cores: 32 more needed, 19 left in the project",
        "quota of volume storage (GB): 2400 more needed, 1000 left in the project",
        "Nothing was changed in the cloud.",
    ):
        assert line in result.output
    assert result.changed == {"localhost": 0}
    assert {kind: names for kind, names in list_resources().items() if names} == OTHER_RESOURCES


def test_openstack_yml_creates_a_site(play: Play, arguments: list[str]) -> None:
    """In an empty project, it creates network, key, volume and three servers, one of which boots from a volume."""
    result = play("openstack.yml", Path("localhost,"), *arguments)
    assert result.changed["localhost"] >= 8
    assert len(list_resources()["volumes"]) == 2


def test_a_second_run_changes_nothing(play: Play, arguments: list[str]) -> None:
    """The playbook finds all resources and changes nothing."""
    result = play("openstack.yml", Path("localhost,"), *arguments)
    assert result.changed == {"localhost": 0}


def test_resources_of_another_site_are_not_touched(play: Play, arguments: list[str]) -> None:
    """A resource of others with the site's name is neither used nor removed, and each one is reported."""
    for state in ("present", "absent"):
        named = ["-e", "openstack_name=other-site", "-e", f"openstack_state={state}"]
        result = play("openstack.yml", Path("localhost,"), *arguments, *named, expect_failure=True)
        assert "network other-site: already exists and was not created for this site" in result.output
        assert "security group other-site: already exists and was not created for this site" in result.output
        assert result.changed == {"localhost": 0}


def test_an_invalid_plan_is_rejected_before_the_cloud_is_queried(play: Play, arguments: list[str]) -> None:
    """A misspelt group is reported, and no request is sent to the cloud."""
    kinds = [*WITHOUT_FRAMEWORK, {"name": "more", "count": 1, "flavor": "m1.large", "groups": ["kafak"]}]
    result = play(
        "openstack.yml",
        Path("localhost,"),
        *arguments,
        "-e",
        json.dumps({"openstack_groups": kinds}),
        expect_failure=True,
    )
    assert "group kafak: unknown" in result.output
    assert "Query the networks with the site's name" not in result.output


def test_a_server_that_is_no_longer_planned_is_a_conflict(play: Play, arguments: list[str]) -> None:
    """The playbook fails, names the server and changes nothing."""
    result = play(
        "openstack.yml",
        Path("localhost,"),
        *arguments,
        "-e",
        json.dumps({"openstack_groups": WITHOUT_FRAMEWORK}),
        expect_failure=True,
    )
    assert (
        "server cloud-test-framework-1: belongs to the site, but openstack_groups no longer contains it"
        in result.output
    )
    assert result.changed == {"localhost": 0}


def read_inventory(site: str = SITE) -> dict[str, Any]:
    """Return the dynamic inventory of a site, as ansible-inventory lists it."""
    inventory = ANSIBLE / "inventories" / "openstack" / "openstack.yml"
    process = run(
        str(Path(sys.executable).with_name("ansible-inventory")),
        "-i",
        str(inventory),
        "--list",
        "-e",
        f"site_name={site}",
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return dict(json.loads(process.stdout))


def floating_ip() -> str:
    """Return the floating IP address of the load generator, as the inventory has it."""
    return str(read_inventory()["_meta"]["hostvars"]["cloud-test-load-1"]["ansible_host"]["__ansible_unsafe"])


def test_the_inventory_has_the_groups_and_addresses_of_the_servers() -> None:
    """Groups come from the servers' metadata, addresses from the cloud; servers of others are not listed."""
    inventory = read_inventory()
    assert inventory["kafka"]["hosts"] == ["cloud-test-broker-1"]
    assert inventory["spark_workers"]["hosts"] == ["cloud-test-framework-1"]
    hostvars = inventory["_meta"]["hostvars"]
    assert {name: variables["site_address"]["__ansible_unsafe"] for name, variables in hostvars.items()} == HOSTS
    assert hostvars["cloud-test-broker-1"]["ansible_host"]["__ansible_unsafe"] == HOSTS["cloud-test-broker-1"]
    assert len(hostvars["cloud-test-broker-1"]["volume_devices"]) == 3


def test_the_floating_ip_is_a_new_one() -> None:
    """The address is newly allocated; the free address of the project is not used."""
    assert floating_ip().startswith("203.0.113.")
    assert [floating_ip()] == [
        address for address in list_resources()["addresses"] if address not in OTHER_RESOURCES["addresses"]
    ]


@pytest.fixture
def route_to_load_generator(hosts: Hosts) -> Iterator[None]:
    """Route the floating IP address to the load generator's container; remove the route afterwards."""
    address = floating_ip()
    assert hosts("exec", "cloud-test-load-1", "ip", "address", "add", f"{address}/32", "dev", "lo").returncode == 0
    assert run("ip", "route", "add", f"{address}/32", "via", HOSTS["cloud-test-load-1"]).returncode == 0
    yield
    run("ip", "route", "del", f"{address}/32")


def test_ansible_connects_through_the_jump_host(play: Play, route_to_load_generator: None) -> None:
    """A role runs on a host without a floating IP address, through the host that has one."""
    key = Path(os.environ.get("STREAM_BENCH_HOSTS") or Path.home() / ".cache/stream-bench/hosts") / "key"
    variables: dict[str, Any] = {"site_name": SITE, "site_networks": ["172.30.99.0/24"], "ansible_user": "operator1"}
    variables |= {"ansible_ssh_private_key_file": str(key), "volume_devices": []}  # a container has no volume
    variables["openstack_ssh"] = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    inventory = ANSIBLE / "inventories" / "openstack" / "openstack.yml"
    result = play("brokers.yml", inventory, "-e", json.dumps(variables), "--limit", "cloud-test-broker-1", "-vvv")
    assert result.changed["cloud-test-broker-1"]
    assert f"operator1@{floating_ip()}" in result.output


def test_absent_removes_only_resources_of_the_site(play: Play, arguments: list[str]) -> None:
    """Absent removes what present created, also servers and server groups of former kinds, and nothing else."""
    assert sum(map(len, list_resources().values())) > sum(map(len, OTHER_RESOURCES.values()))
    fewer = json.dumps({"openstack_groups": WITHOUT_FRAMEWORK, "openstack_state": "absent"})
    play("openstack.yml", Path("localhost,"), *arguments, "-e", fewer)
    assert {kind: names for kind, names in list_resources().items() if names} == OTHER_RESOURCES


def test_a_second_absent_changes_nothing(play: Play, arguments: list[str]) -> None:
    """A second run with absent finds nothing to remove."""
    result = play("openstack.yml", Path("localhost,"), *arguments, "-e", "openstack_state=absent")
    assert result.changed == {"localhost": 0}


SMALL_SITE = {
    "openstack_name": "small-test",
    "openstack_network": "other-site",
    "openstack_network_cidr": "10.9.0.0/24",
    "openstack_external_network": "",
    "openstack_fixed_ips": {},
    "openstack_groups": [
        {"name": "spark", "count": 2, "flavor": "m1.medium", "groups": ["spark_workers"]},
        {"name": "master", "count": 1, "flavor": "m1.medium", "groups": ["spark_master"]},
        {"name": "load", "count": 1, "flavor": "m1.medium", "groups": ["load_master"]},
    ],
}
"""A site without volumes in a network of others."""


@pytest.fixture(scope="module")
def without_volume_service() -> None:
    """Remove the volume service from the cloud's catalog."""
    script = "import openstack; cloud = openstack.connect(); cloud.delete_service('cinderv3')"
    process = run(sys.executable, "-c", script)
    assert process.returncode == 0, process.stderr[-2000:]
    script = "import openstack, sys; sys.exit(openstack.connect().has_service('block-storage'))"
    assert run(sys.executable, "-c", script).returncode == 0


def small_site(**change: Any) -> list[str]:
    """Return the arguments of openstack.yml for the small site, changed as given."""
    return ["-e", json.dumps({"site_name": "small-test", "site_networks": ["10.9.0.0/24"], **SMALL_SITE, **change})]


def test_a_site_needs_neither_a_network_nor_a_volume_service(
    play: Play, arguments: list[str], without_volume_service: None
) -> None:
    """The servers are in the existing network, a second run changes nothing, and the inventory lists the servers."""
    play("openstack.yml", Path("localhost,"), *arguments, *small_site())
    assert play("openstack.yml", Path("localhost,"), *arguments, *small_site()).changed == {"localhost": 0}
    found = list_resources()
    assert {kind: found[kind] for kind in ("networks", "routers")} == {
        "networks": OTHER_RESOURCES["networks"],
        "routers": [],
    }
    addresses = [
        host["site_address"]["__ansible_unsafe"] for host in read_inventory("small-test")["_meta"]["hostvars"].values()
    ]
    assert len(addresses) == 4
    assert all(address.startswith("10.9.0.") for address in addresses)


def test_a_volume_without_a_volume_service_is_reported(play: Play, arguments: list[str]) -> None:
    """The preflight names the kind."""
    kinds = [*SMALL_SITE["openstack_groups"], {**WITHOUT_FRAMEWORK[0], "flavor": "m1.medium"}]
    change = small_site(openstack_groups=kinds)
    result = play("openstack.yml", Path("localhost,"), *arguments, *change, expect_failure=True)
    assert "kind broker: the cloud has no volume service; set volume_gb: 0" in result.output


def test_absent_keeps_the_existing_network(play: Play, arguments: list[str]) -> None:
    """Absent removes the servers and their groups, also of a kind without servers; the network of others stays."""
    script = "import openstack; openstack.connect().delete_server('small-test-master-1', wait=True)"
    assert run(sys.executable, "-c", script).returncode == 0
    kinds = [kind for kind in SMALL_SITE["openstack_groups"] if kind["name"] != "master"]
    play("openstack.yml", Path("localhost,"), *arguments, *small_site(openstack_groups=kinds, openstack_state="absent"))
    assert {kind: names for kind, names in list_resources().items() if names} == OTHER_RESOURCES


IPV6_SITE = {
    "site_name": "ipv6-test",
    "site_networks": ["fd30:98::/64"],
    "openstack_operators": "fd30:99::/64",
    "openstack_fixed_ips": {},
    "openstack_groups": [
        {"name": "broker", "count": 1, "flavor": "m1.medium", "groups": ["kafka"]},
        {"name": "load", "count": 1, "flavor": "m1.medium", "groups": ["load_master"]},
    ],
}
"""A site whose network has IPv6 alone."""
LIST_RULES = """
import json, openstack
network = openstack.connect().network
rules = network.security_group_rules(security_group_id=network.find_security_group("ipv6-test").id, direction="ingress")
print(json.dumps(sorted([rule.ether_type, rule.protocol, rule.remote_ip_prefix] for rule in rules)))
"""


def test_a_site_may_have_ipv6_addresses(play: Play, arguments: list[str]) -> None:
    """Servers and rules have no others, a second run changes nothing, and absent removes everything."""
    site = ["-e", json.dumps(IPV6_SITE)]
    play("openstack.yml", Path("localhost,"), *arguments, *site)
    assert play("openstack.yml", Path("localhost,"), *arguments, *site).changed == {"localhost": 0}
    hosts = read_inventory("ipv6-test")["_meta"]["hostvars"].values()
    addresses = {host[name]["__ansible_unsafe"] for host in hosts for name in ("site_address", "ansible_host")}
    assert len(addresses) == len(hosts) == 2
    assert all(address.startswith("fd30:98::") for address in addresses), addresses
    assert json.loads(run(sys.executable, "-c", LIST_RULES).stdout) == [
        ["IPv6", "ipv6-icmp", "fd30:98::/64"],
        ["IPv6", "tcp", "fd30:98::/64"],
        ["IPv6", "tcp", "fd30:99::/64"],
        ["IPv6", "udp", "fd30:98::/64"],
    ]
    play("openstack.yml", Path("localhost,"), *arguments, *site, "-e", "openstack_state=absent")
    assert {kind: names for kind, names in list_resources().items() if names} == OTHER_RESOURCES
