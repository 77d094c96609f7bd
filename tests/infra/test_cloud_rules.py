"""What openstack.yml and its inventory decide, without a cloud: what is the site's, what is in its way, how hosts are reached."""

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
    "openstack_operators": "203.0.113.7/32",
    "openstack_groups": [
        {"name": "broker", "count": 1, "flavor": "large", "groups": ["kafka"]},
        {"name": "load", "count": 1, "flavor": "large", "groups": ["load_master"]},
    ],
}


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(**things: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What stands in a cloud, by kind; nothing of the kinds that are not named."""
    return {"networks": [], "routers": [], "groups": [], "servers": [], "volumes": [], **things}


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
    """The filters that tell what is the site's."""
    return module_of(FILTERS / "cloud_conflicts.py")


@pytest.fixture(scope="module")
def inventory() -> ModuleType:
    """The inventory's own module."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")
    return module_of(ANSIBLE / "inventory_plugins" / "site_servers.py")


@pytest.mark.parametrize("kind", ["networks", "routers", "groups"])
@pytest.mark.parametrize("state", ["present", "absent"])
def test_what_has_the_name_but_not_the_mark_is_refused(rules: ModuleType, kind: str, state: str) -> None:
    """Somebody else's is neither changed nor removed."""
    theirs = found(**{kind: [{"name": "lab", "description": "of the kitchen"}, {"name": "kitchen", "description": ""}]})
    (said,) = rules.cloud_conflicts(theirs, "lab", [], state=state)
    assert "lab: is there already, and not made for this site" in said


def test_what_has_the_mark_is_ours(rules: ModuleType) -> None:
    """By description or by metadata, whatever the name is."""
    ours = [
        {"name": "lab", "description": "stream-bench site lab"},
        {"name": "x", "metadata": {"stream_bench_site": "lab"}},
    ]
    theirs = [
        {"name": "lab", "description": None},
        {"name": "lab-1", "metadata": {"stream_bench_site": "lab-1"}},
        {"name": "lab"},
    ]
    assert rules.owned_by([*ours, *theirs], "lab") == ours


def test_a_server_that_is_asked_for_no_longer_is_named(rules: ModuleType) -> None:
    """Before anything is made; absent takes it."""
    stands = found(
        servers=[
            server("lab-w-1", "10.0.0.1"),
            server("lab-w-2", "10.0.0.2"),
            server("kitchen", "10.0.0.3", site="kitchen"),
        ]
    )
    (said,) = rules.cloud_conflicts(stands, "lab", ["lab-w-1"], state="present")
    assert said.startswith("server lab-w-2: is the site's, but no longer asked for by openstack_groups")
    assert rules.cloud_conflicts(stands, "lab", ["lab-w-1"], state="absent") == []


def test_servers_of_others_are_not_in_the_inventory(inventory: ModuleType) -> None:
    """Whatever they are called."""
    servers = [server("lab-b-1", "10.0.0.1", "kafka", "nfs"), server("lab-b-2", "10.0.0.2", "kafka", site="kitchen")]
    hosts = inventory.hosts_of([*servers, {**server("lab-b-3", "10.0.0.3"), "metadata": {}}], [], {}, site="lab")
    assert {name: groups for name, (groups, _) in hosts.items()} == {"lab-b-1": ["kafka", "nfs"]}


def test_a_server_is_reached_through_the_load(inventory: ModuleType) -> None:
    """Where only others have an address of the outside world, of the server itself or of the network."""
    servers = [
        server("b", "10.0.0.1", "kafka"),
        server("a", "10.0.0.2", "nfs", outside="203.0.113.2"),
        server("l", "10.0.0.3", "load_master"),
    ]
    hosts = {
        name: told
        for name, (_, told) in inventory.hosts_of(servers, [], {"10.0.0.3": "203.0.113.3"}, site="lab").items()
    }
    assert {name: told["ansible_host"] for name, told in hosts.items()} == {
        "b": "10.0.0.1",
        "a": "203.0.113.2",
        "l": "203.0.113.3",
    }
    assert {name: told["site_address"] for name, told in hosts.items()} == {
        "b": "10.0.0.1",
        "a": "10.0.0.2",
        "l": "10.0.0.3",
    }
    assert {name: told.get("openstack_jump") for name, told in hosts.items()} == {
        "b": {"id": "id-of-l", "address": "203.0.113.3"},
        "a": None,
        "l": None,
    }


def test_a_server_without_an_address_is_named(inventory: ModuleType) -> None:
    """One that the cloud could not make would be missing in silence."""
    broken = {**server("b", "10.0.0.1", "kafka"), "addresses": {}, "status": "ERROR"}
    with pytest.raises(Exception, match="server b: has no IPv4 address, its status is ERROR"):
        inventory.hosts_of([broken], [], {}, site="lab")


def test_a_volume_is_found_by_what_it_is_called_in_its_server(inventory: ModuleType) -> None:
    """By its id, of which virtio has twenty characters."""
    volume = {"id": "0c1f0ec6-8d0f-4b6d-a1a5-1c1ec2b0a3e5", "attachments": [{"server_id": "id-of-b"}]}
    hosts = inventory.hosts_of(
        [server("b", "10.0.0.1", "kafka"), server("l", "10.0.0.2", "load_master")], [volume], {}, site="lab"
    )
    assert hosts["b"][1]["volume_devices"][0] == "/dev/disk/by-id/virtio-0c1f0ec6-8d0f-4b6d-a"
    assert "volume_devices" not in hosts["l"][1]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"site_name": "a/b"}, "site_name: found 'a/b'; allowed:"),
        ({"openstack_operators": "203.0.113.7"}, "openstack_operators: found '203.0.113.7'; allowed: an IPv4 network"),
        (
            {"openstack_groups": [*PLAN["openstack_groups"], PLAN["openstack_groups"][1]]},
            "found 2 kinds named load; allowed: each its own",
        ),
        (
            {"openstack_groups": [{**PLAN["openstack_groups"][0], "count": 2}, PLAN["openstack_groups"][1]]},
            "group kafka: found 2 hosts",
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
    ids=["name", "operators", "kinds", "brokers", "group", "address"],
)
def test_a_plan_that_makes_no_site_is_refused(play: Play, change: dict[str, Any], line: str) -> None:
    """Before the cloud is asked for anything."""
    done = play("openstack.yml", Path("localhost,"), "-e", json.dumps({**PLAN, **change}), refused=True)
    assert line in done.said
    assert "Networks of the site's name" not in done.said


def test_ssh_goes_through_the_jump_and_not_through_itself(inventory: ModuleType, tmp_path: Path) -> None:
    """What ssh understands of the servers' variables: a way to those without an address, none to the one that has it."""
    servers = [server("b", "10.0.0.1", "kafka"), server("l", "10.0.0.3", "load_master", outside="203.0.113.3")]
    told = {name: variables for name, (_, variables) in inventory.hosts_of(servers, [], {}, site="lab").items()}
    key = {"ansible_user": "debian", "ansible_ssh_private_key_file": "/keys/one"}
    (tmp_path / "hosts.yml").write_text(json.dumps({"servers": {"hosts": told, "vars": key}}))
    (tmp_path / "group_vars").mkdir()
    shutil.copy(ANSIBLE / "inventories" / "openstack" / "group_vars" / "servers.yml", tmp_path / "group_vars")
    assert understood(tmp_path / "hosts.yml", "l") == {"hostkeyalias": "id-of-l", "stricthostkeychecking": "accept-new"}
    way = "ssh -o StrictHostKeyChecking=accept-new -o HostKeyAlias=id-of-l -i /keys/one -W [%h]:%p debian@203.0.113.3"
    assert understood(tmp_path / "hosts.yml", "b") == {
        "hostkeyalias": "id-of-b",
        "stricthostkeychecking": "accept-new",
        "proxycommand": way,
    }


def understood(inventory: Path, host: str) -> dict[str, str]:
    """What ssh takes from a host's ansible_ssh_common_args, of the settings that lead to it."""
    ssh = shutil.which("ssh")
    if ssh is None:
        pytest.skip("ssh is not installed; apt-get install openssh-client")
    ansible = [str(Path(sys.executable).with_name("ansible")), "-i", str(inventory), host, "-c", "local", "-o"]
    said = run(*ansible, "-m", "ansible.builtin.debug", "-a", "var=ansible_ssh_common_args")
    arguments = json.loads(said[said.index("{") :])["ansible_ssh_common_args"]
    settings = dict(
        line.split(" ", 1)
        for line in run(ssh, "-F", "none", "-G", *shlex.split(arguments), host).splitlines()
        if " " in line
    )
    return {
        name: settings[name] for name in ("hostkeyalias", "stricthostkeychecking", "proxycommand") if name in settings
    }


def run(*words: str) -> str:
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
    done = subprocess.run(words, cwd=ANSIBLE, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
