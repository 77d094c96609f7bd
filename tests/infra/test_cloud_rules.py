"""Tests of the filters and the inventory plugin of openstack.yml, without a cloud."""

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
FILTERS = ANSIBLE / "roles" / "openstack" / "filter_plugins"
Play = Callable[..., Any]
PLAN = {
    "site_name": "lab",
    "site_networks": ["10.0.0.0/24"],
    "openstack_operators": "100.64.0.7/32",
    "openstack_groups": [
        {"name": "broker", "count": 1, "flavor": "large", "groups": ["kafka"]},
        {"name": "load", "count": 1, "flavor": "large", "groups": ["load_master"]},
    ],
}


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resources(**by_kind: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the resources of a cloud by kind; a kind that is not given has none."""
    kinds = ("networks", "routers", "groups", "servers", "volumes", "server_groups", "addresses")
    return {**{kind: [] for kind in kinds}, **by_kind}


def server(name: str, address: str, *groups: str, site: str = "lab", outside: str = "") -> dict[str, Any]:
    addresses = [{"addr": address, "version": 6 if ":" in address else 4, "OS-EXT-IPS:type": "fixed"}]
    addresses += [{"addr": outside, "version": 4, "OS-EXT-IPS:type": "floating"}] if outside else []
    metadata = {"stream_bench_site": site, "stream_bench_groups": "+".join(groups)}
    return {
        "id": f"id-of-{name}",
        "name": name,
        "status": "ACTIVE",
        "access_ipv4": "",
        "addresses": {"net": addresses},
        "metadata": metadata,
    }


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    """Return the module of the filters that find a site's resources and conflicts."""
    return load_module(FILTERS / "cloud_conflicts.py")


@pytest.fixture(scope="module")
def inventory() -> ModuleType:
    """Return the module of the inventory plugin."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")
    return load_module(ANSIBLE / "inventory_plugins" / "site_servers.py")


@pytest.mark.parametrize("kind", ["networks", "routers", "groups"])
@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_resource_of_others_with_the_sites_name_is_a_conflict(rules: ModuleType, kind: str, state: str) -> None:
    """A resource without the site's mark is reported as a conflict, for present and for absent."""
    existing = resources(
        **{kind: [{"name": "lab", "description": "of another team"}, {"name": "other", "description": ""}]}
    )
    (conflict,) = rules.cloud_conflicts(existing, "lab", [], state=state)
    assert "lab: already exists and was not created for this site" in conflict


def test_a_resource_with_the_mark_belongs_to_the_site(rules: ModuleType) -> None:
    """The mark is in the description or in the metadata; the name does not matter."""
    marked = [
        {"name": "lab", "description": "stream-bench site lab"},
        {"name": "x", "metadata": {"stream_bench_site": "lab"}},
    ]
    others = [
        {"name": "lab", "description": None},
        {"name": "lab-1", "metadata": {"stream_bench_site": "lab-1"}},
        {"name": "lab"},
    ]
    assert rules.owned_by([*marked, *others], "lab") == marked


def test_a_server_that_is_no_longer_planned_is_a_conflict(rules: ModuleType) -> None:
    """For present it is a conflict; absent removes it."""
    existing = resources(
        servers=[
            server("lab-w-1", "10.0.0.1"),
            server("lab-w-2", "10.0.0.2"),
            server("other", "10.0.0.3", site="other"),
        ]
    )
    planned = [{"name": "lab-w-1", "kind": {"name": "w"}}]
    (conflict,) = rules.cloud_conflicts(existing, "lab", planned, state="present")
    assert conflict.startswith("server lab-w-2: belongs to the site, but openstack_groups no longer contains it")
    assert rules.cloud_conflicts(existing, "lab", planned, state="absent") == []


def test_a_server_group_with_servers_of_others_is_a_conflict(rules: ModuleType) -> None:
    """The site would place its servers together with those of others; absent leaves the group alone."""
    groups = [{"name": "lab-w", "member_ids": ["id-of-lab-w-1", "id-of-other"]}]
    existing = resources(servers=[server("lab-w-1", "10.0.0.1")], server_groups=groups)
    planned = [{"name": "lab-w-1", "kind": {"name": "w"}}]
    (conflict,) = rules.cloud_conflicts(existing, "lab", planned, state="present")
    assert conflict.startswith("server group lab-w: already exists and has servers that are not of this site")
    assert rules.cloud_conflicts(existing, "lab", planned, state="absent") == []


def test_server_groups_of_former_kinds_are_removable(rules: ModuleType) -> None:
    """The servers remember the kinds; a group with a server of others, or of another name, is never removed."""
    one = server("lab-w-1", "10.0.0.1")
    one["metadata"] |= {"stream_bench_kind": "w", "stream_bench_kinds": "gone+shared+w"}
    kinds = rules.former_kinds([one, server("x", "10.0.0.2", site="other")], "lab")
    assert kinds == ["gone", "shared", "w"]
    groups = [
        {"name": "lab-w", "member_ids": ["id-of-lab-w-1"]},
        {"name": "lab-gone", "member_ids": []},
        {"name": "lab-shared", "member_ids": ["id-of-lab-w-1", "id-of-x"]},
        {"name": "lab-unknown", "member_ids": []},
    ]
    assert rules.removable_groups(groups, [one], "lab", kinds) == groups[:2]


def test_a_server_that_does_not_run_is_reported_with_the_reason(rules: ModuleType) -> None:
    """Each line has the state that the cloud gives; running and stopped servers are not reported."""
    servers = [{"name": "a", "status": "ACTIVE"}, {"name": "b", "status": "SHUTOFF"}, {"name": "c", "status": "BUILD"}]
    servers += [{"name": "d", "status": "ERROR", "fault": {"message": "No valid host was found"}}]
    lines = rules.server_faults(servers, [{"name": name} for name in "abcde"], 900)
    assert [line.split(":")[0] for line in lines] == ["server c", "server d", "server e"]
    assert "still being created after 900 s" in lines[0]
    assert "its status is ERROR (No valid host was found); openstack server delete d" in lines[1]


KIND = {"name": "w", "count": 2, "flavor": "large", "groups": ["spark_workers"]}
OFFER = {
    "has_volumes": True,
    "flavors": [
        {"id": "1", "name": "large", "vcpus": 4, "ram_mb": 8192, "disk_gb": 20},
        {"id": "2", "name": "diskless", "vcpus": 4, "ram_mb": 8192, "disk_gb": 0},
    ],
    "images": [{"id": "3", "name": "debian-12", "disk_gb": 3}],
    "networks": [
        {"id": "4", "name": "public", "external": True, "cidrs": []},
        {"id": "5", "name": "lab-net", "external": False, "cidrs": ["10.0.0.0/25", "fd00::/64"]},
        {"id": "6", "name": "far", "external": False, "cidrs": ["10.9.0.0/24"]},
        {"id": "7", "name": "six", "external": False, "cidrs": ["fd00::/64"]},
        {"id": "8", "name": "twin", "external": False, "cidrs": []},
        {"id": "9", "name": "twin", "external": False, "cidrs": []},
    ],
    "zones": ["nova"],
    "volume_zones": ["nova"],
    "group_members": 10,
    "left": {"instances": 2, "cores": 8, "ram_mb": 16384, "volumes": 4, "gigabytes": 100, "floating_ips": 1},
}


def preflight(
    preflight_rules: ModuleType,
    *,
    kind: dict[str, Any] | None = None,
    offer: dict[str, Any] | None = None,
    own: dict[str, list[dict[str, Any]]] | None = None,
    **plan: Any,
) -> list[str]:
    """Return the problems of a site with two servers of one kind, changed as given."""
    asked = {**KIND, **(kind or {})}
    servers = [{"name": f"lab-w-{number}", "kind": asked} for number in range(1, asked["count"] + 1)]
    given = {"site": "lab", "servers": servers, "image": "debian-12", "network": "", "cidr": "10.0.0.0/24"}
    given |= {"external_network": "public", "zone": "", "spread": True, **plan}
    return list(preflight_rules.preflight_errors(given, {**OFFER, **(offer or {})}, resources(**(own or {}))))


@pytest.fixture(scope="module")
def preflight_rules() -> ModuleType:
    """Return the module of the filters that compare a plan with what the cloud offers."""
    return load_module(FILTERS / "cloud_preflight.py")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"image": "3", "external_network": "4", "kind": {"flavor": "1"}},
        {"external_network": "", "network": "lab-net"},
        {"network": "six", "cidr": "fd00::/56"},
        {"kind": {"flavor": "diskless", "boot_volume_gb": 10, "volume_gb": 40}},
        {"zone": "nova:host-1"},
        {"kind": {"count": 12}, "spread": False, "offer": {"left": {}}},
        {"offer": {"has_volumes": False}},
    ],
    ids=["names", "ids", "network", "IPv6", "boot volume", "zone", "no spreading", "no volume service"],
)
def test_a_plan_that_the_cloud_can_create_has_no_problem(preflight_rules: ModuleType, change: dict[str, Any]) -> None:
    """Names and ids are accepted, and a quota that is exactly large enough."""
    assert preflight(preflight_rules, **change) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"kind": {"flavor": "larg"}},
            "kind w: flavor larg does not exist; did you mean large? existing: diskless, large",
        ),
        ({"kind": {"flavor": "diskless"}}, "kind w: flavor diskless has no disk; set boot_volume_gb, such as 20"),
        ({"kind": {"boot_volume_gb": 2}}, "kind w: boot_volume_gb is 2 GB, but image debian-12 needs 3 GB"),
        (
            {"image": "debian-13"},
            "openstack_image: debian-13 does not exist; did you mean debian-12? existing: debian-12",
        ),
        ({"zone": "south"}, "openstack_availability_zone: south does not exist; existing: nova"),
        (
            {"external_network": "lab-net"},
            "openstack_external_network: lab-net does not exist; existing: public",
        ),
        (
            {"external_network": "", "kind": {"count": 1, "floating_ip": True}},
            "openstack_external_network: is empty, but floating_ip needs one; existing: public",
        ),
        (
            {"network": "farr"},
            "openstack_network: farr does not exist; did you mean far? existing: far, lab-net, public",
        ),
        ({"network": "twin"}, "openstack_network: found 2 named twin; give the id"),
        ({"network": "public"}, "openstack_network: network public has no subnet; its servers would have no address"),
        (
            {"network": "six"},
            "openstack_network: network six has the addresses fd00::/64, which are not in 10.0.0.0/24",
        ),
        (
            {"network": "lab-net", "cidr": "fd00::/64"},
            "openstack_network: network lab-net has the addresses 10.0.0.0/25, which are not in fd00::/64",
        ),
        (
            {"cidr": "fd00::/64", "kind": {"count": 1, "floating_ip": True}},
            "floating_ip: floating IP addresses are IPv4, but the site's network is IPv6; remove it from all kinds",
        ),
        (
            {"network": "far"},
            "openstack_network: network far has the addresses 10.9.0.0/24, which are not in 10.0.0.0/24",
        ),
        (
            {"kind": {"volume_gb": 10}, "offer": {"has_volumes": False}},
            "kind w: the cloud has no volume service; set volume_gb: 0",
        ),
        (
            {"offer": {"group_members": 1}},
            "kind w: has 2 servers, but a server group of this project holds at most 1; set openstack_spread: false",
        ),
        ({"kind": {"floating_ip": True}}, "quota of floating IP addresses: 2 more needed, 1 left in the project"),
        (
            {"kind": {"volume_gb": 40, "boot_volume_gb": 20}},
            "quota of volume storage (GB): 120 more needed, 100 left in the project",
        ),
        ({"offer": {"left": {"routers": 0}}}, "quota of routers: 1 more needed, 0 left in the project"),
    ],
    ids=[
        *("flavor", "no disk", "small volume", "image", "zone", "external", "no external", "network", "twins"),
        *("no subnet", "IPv6", "IPv4 and IPv6", "floating IPv6"),
        *("addresses", "volume service", "group", "floating IPs", "storage", "routers"),
    ],
)
def test_a_plan_that_the_cloud_cannot_create_is_reported(
    preflight_rules: ModuleType, change: dict[str, Any], line: str
) -> None:
    """Each problem has one line, with the names that exist."""
    (found,) = preflight(preflight_rules, **change)
    assert found.startswith(line)


def test_only_servers_that_do_not_exist_need_quota(preflight_rules: ModuleType) -> None:
    """With both servers, their volumes and addresses nothing is needed, even if flavor and image are gone."""
    nothing = {"instances": 0, "cores": 0, "ram_mb": 0, "volumes": 0, "gigabytes": 0, "floating_ips": 0}
    gone = {"left": nothing, "flavors": [], "images": [], "zones": []}
    kind = {"volume_gb": 10, "boot_volume_gb": 10, "floating_ip": True}
    own = {
        "servers": [server("lab-w-1", "10.0.0.1"), server("lab-w-2", "10.0.0.2")],
        "volumes": [{"name": "lab-w-1"}, {"name": "lab-w-2"}],
        "addresses": [{"fixed_ip_address": "10.0.0.1"}, {"fixed_ip_address": "10.0.0.2"}],
    }
    assert preflight(preflight_rules, kind=kind, offer=gone, own=own) == []
    one_is_missing = {kind: found[:1] for kind, found in own.items()}
    lines = preflight(preflight_rules, kind=kind, offer={"left": nothing}, own=one_is_missing)
    assert [line.partition(" more")[0] for line in lines] == [
        *("quota of servers: 1", "quota of cores: 4", "quota of RAM (MB): 8192", "quota of volumes: 2"),
        *("quota of volume storage (GB): 20", "quota of floating IP addresses: 1"),
    ]


def test_the_volume_service_is_not_asked_for_a_site_without_volumes(inventory: ModuleType) -> None:
    """The servers of the site tell whether they have volumes; those of others do not matter."""
    others = {**server("x", "10.0.0.2", site="other"), "attached_volumes": [{"id": "1"}]}
    one = {**server("b", "10.0.0.1"), "attached_volumes": []}
    assert not inventory.has_volumes([one, others], "lab")
    assert inventory.has_volumes([{**one, "attached_volumes": [{"id": "2"}]}], "lab")


def test_the_inventory_has_only_servers_of_the_site(inventory: ModuleType) -> None:
    """Servers without the site's mark are left out, whatever their names are."""
    servers = [server("lab-b-1", "10.0.0.1", "kafka", "nfs"), server("lab-b-2", "10.0.0.2", "kafka", site="other")]
    hosts = inventory.build_hosts([*servers, {**server("lab-b-3", "10.0.0.3"), "metadata": {}}], [], {}, site="lab")
    assert {name: groups for name, (groups, _) in hosts.items()} == {"lab-b-1": ["kafka", "nfs"]}


def test_servers_without_a_floating_ip_use_the_load_generator_as_jump_host(inventory: ModuleType) -> None:
    """The jump host is the load generator if it has a floating IP address, even if another server has one too."""
    servers = [
        server("b", "10.0.0.1", "kafka"),
        server("a", "10.0.0.2", "nfs", outside="203.0.113.2"),
        server("l", "10.0.0.3", "load_master"),
    ]
    hosts = {
        name: variables
        for name, (_, variables) in inventory.build_hosts(servers, [], {"10.0.0.3": "203.0.113.3"}, site="lab").items()
    }
    assert {name: variables["ansible_host"] for name, variables in hosts.items()} == {
        "b": "10.0.0.1",
        "a": "203.0.113.2",
        "l": "203.0.113.3",
    }
    assert {name: variables["site_address"] for name, variables in hosts.items()} == {
        "b": "10.0.0.1",
        "a": "10.0.0.2",
        "l": "10.0.0.3",
    }
    assert {name: variables.get("openstack_jump") for name, variables in hosts.items()} == {
        "b": {"id": "id-of-l", "address": "203.0.113.3"},
        "a": None,
        "l": None,
    }


def test_a_server_without_an_address_is_an_error(inventory: ModuleType) -> None:
    """A server that the cloud failed to create is reported with its status."""
    broken = {**server("b", "10.0.0.1", "kafka"), "addresses": {}, "status": "ERROR"}
    with pytest.raises(Exception, match="server b: has no address, its status is ERROR"):
        inventory.build_hosts([broken], [], {}, site="lab")


def test_a_server_has_its_ipv6_address_only_without_an_ipv4_one(inventory: ModuleType) -> None:
    """Whatever the order in which the cloud lists them."""
    six, both = server("a", "fd00::1", "kafka"), server("b", "fd00::2", "load_master")
    both["addresses"]["net"] += server("", "10.0.0.2")["addresses"]["net"]
    hosts = inventory.build_hosts([six, both], [], {}, site="lab")
    assert {name: variables["site_address"] for name, (_, variables) in hosts.items()} == {
        "a": "fd00::1",
        "b": "10.0.0.2",
    }


def test_a_volume_has_the_device_paths_of_its_id(inventory: ModuleType) -> None:
    """The path with virtio has the first twenty characters of the volume's id."""
    volume = {"id": "0c1f0ec6-8d0f-4b6d-a1a5-1c1ec2b0a3e5", "attachments": [{"server_id": "id-of-b"}]}
    hosts = inventory.build_hosts(
        [server("b", "10.0.0.1", "kafka"), server("l", "10.0.0.2", "load_master")], [volume], {}, site="lab"
    )
    assert hosts["b"][1]["volume_devices"][0] == "/dev/disk/by-id/virtio-0c1f0ec6-8d0f-4b6d-a"
    assert "volume_devices" not in hosts["l"][1]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"site_name": "a/b"}, "site_name: found 'a/b'; allowed:"),
        ({"openstack_operators": "203.0.113.7"}, "openstack_operators: found '203.0.113.7'; allowed: a network"),
        ({"openstack_operators": "203.0.113.7/32"}, "openstack_operators: found 203.0.113.7/32, which is an example"),
        ({"openstack_operators": "2001:db8::7/128"}, "openstack_operators: found 2001:db8::7/128, which is an example"),
        (
            {"openstack_groups": [*PLAN["openstack_groups"], PLAN["openstack_groups"][1]]},
            "found 2 kinds named load; give each kind its own name",
        ),
        (
            {
                "openstack_groups": [
                    {**PLAN["openstack_groups"][0], "count": 2, "groups": ["pulsar"]},
                    PLAN["openstack_groups"][1],
                ]
            },
            "group pulsar: found 2 hosts",
        ),
        (
            {"openstack_groups": [{**PLAN["openstack_groups"][0], "groups": ["kafak"]}]},
            "group kafak: unknown; allowed:",
        ),
        (
            {"openstack_fixed_ips": {"lab-load-1": "10.1.0.1"}},
            "host lab-load-1: its address 10.1.0.1 is in none of site_networks",
        ),
    ],
    ids=["name", "operators", "example", "IPv6 example", "kinds", "brokers", "group", "address"],
)
def test_an_invalid_plan_is_rejected(play: Play, change: dict[str, Any], line: str) -> None:
    """The error is reported before any request is sent to the cloud."""
    result = play("openstack.yml", Path("localhost,"), "-e", json.dumps({**PLAN, **change}), expect_failure=True)
    assert line in result.output
    assert "Query the networks with the site's name" not in result.output


def test_ssh_uses_the_jump_host_only_for_other_hosts(inventory: ModuleType, tmp_path: Path) -> None:
    """OpenSSH uses the jump host for a server without a floating IP address, and connects directly to the jump host."""
    servers = [server("b", "10.0.0.1", "kafka"), server("l", "10.0.0.3", "load_master", outside="203.0.113.3")]
    hostvars = {name: variables for name, (_, variables) in inventory.build_hosts(servers, [], {}, site="lab").items()}
    key = {"ansible_user": "debian", "ansible_ssh_private_key_file": "/keys/one"}
    (tmp_path / "hosts.yml").write_text(json.dumps({"servers": {"hosts": hostvars, "vars": key}}))
    (tmp_path / "group_vars").mkdir()
    shutil.copy(ANSIBLE / "inventories" / "openstack" / "group_vars" / "servers.yml", tmp_path / "group_vars")
    assert ssh_settings(tmp_path / "hosts.yml", "l") == {
        "hostkeyalias": "id-of-l",
        "stricthostkeychecking": "accept-new",
    }
    proxy = "ssh -o StrictHostKeyChecking=accept-new -o HostKeyAlias=id-of-l -i /keys/one -W [%h]:%p debian@203.0.113.3"
    assert ssh_settings(tmp_path / "hosts.yml", "b") == {
        "hostkeyalias": "id-of-b",
        "stricthostkeychecking": "accept-new",
        "proxycommand": proxy,
    }


def ssh_settings(inventory: Path, host: str) -> dict[str, str]:
    """Return the connection settings that ssh derives from a host's ansible_ssh_common_args."""
    ssh = shutil.which("ssh")
    if ssh is None:
        pytest.skip("ssh is not installed; apt-get install openssh-client")
    ansible = [str(Path(sys.executable).with_name("ansible")), "-i", str(inventory), host, "-c", "local", "-o"]
    output = run(*ansible, "-m", "ansible.builtin.debug", "-a", "var=ansible_ssh_common_args")
    arguments = json.loads(output[output.index("{") :])["ansible_ssh_common_args"]
    settings = dict(
        line.split(" ", 1)
        for line in run(ssh, "-F", "none", "-G", *shlex.split(arguments), host).splitlines()
        if " " in line
    )
    return {
        name: settings[name] for name in ("hostkeyalias", "stricthostkeychecking", "proxycommand") if name in settings
    }


def run(*arguments: str) -> str:
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    process = subprocess.run(
        arguments, cwd=ANSIBLE, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
