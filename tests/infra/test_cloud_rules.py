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
    return {"networks": [], "routers": [], "groups": [], "servers": [], "volumes": [], **by_kind}


def server(name: str, address: str, *groups: str, site: str = "lab", outside: str = "") -> dict[str, Any]:
    addresses = [{"addr": address, "version": 4, "OS-EXT-IPS:type": "fixed"}]
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
    (conflict,) = rules.cloud_conflicts(existing, "lab", ["lab-w-1"], state="present")
    assert conflict.startswith("server lab-w-2: belongs to the site, but openstack_groups no longer contains it")
    assert rules.cloud_conflicts(existing, "lab", ["lab-w-1"], state="absent") == []


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
    with pytest.raises(Exception, match="server b: has no IPv4 address, its status is ERROR"):
        inventory.build_hosts([broken], [], {}, site="lab")


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
        ({"openstack_operators": "203.0.113.7"}, "openstack_operators: found '203.0.113.7'; allowed: an IPv4 network"),
        ({"openstack_operators": "203.0.113.7/32"}, "openstack_operators: found 203.0.113.7/32, which is an example"),
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
    ids=["name", "operators", "example", "kinds", "brokers", "group", "address"],
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
