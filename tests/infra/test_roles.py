"""Tests of rules for all roles and playbooks, checked on their files."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
ROLES = sorted(path for path in (ANSIBLE / "roles").iterdir() if path.is_dir())
PLAYBOOKS = sorted(path for path in ANSIBLE.glob("*.yml"))
each_role = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text()) if path.exists() else {}


@each_role
def test_defaults_and_argument_specs_have_the_same_variables(role: Path) -> None:
    """Every default is documented as an argument, and every argument is required or has a default."""
    defaults = set(read(role / "defaults" / "main.yml") or {})
    options = read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    required = {name for name, option in options.items() if option.get("required")}
    assert defaults | required == set(options)


@each_role
def test_variables_begin_with_the_name_of_their_role(role: Path) -> None:
    """No two roles use the same variable name."""
    names = [*(read(role / "defaults" / "main.yml") or {}), *(read(role / "vars" / "main.yml") or {})]
    assert [name for name in names if not name.startswith(f"{role.name}_")] == []


@each_role
def test_every_role_has_a_readme(role: Path) -> None:
    """The README begins with the name of the role and describes it."""
    title, *text = (role / "README.md").read_text().splitlines()
    assert title == f"# {role.name}"
    assert len(" ".join(text)) > 80


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_playbooks_contain_only_roles(playbook: Path) -> None:
    """A playbook has no tasks and no handlers of its own."""
    for play in read(playbook):
        assert not {"tasks", "pre_tasks", "post_tasks", "handlers"} & set(play), playbook
        assert "roles" in play or "ansible.builtin.import_playbook" in play or play.get("gather_facts"), play["name"]


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_role_of_a_playbook_has_its_name_as_a_tag(playbook: Path) -> None:
    """What is checked before hosts are changed runs with any tag."""
    always = {"inventory": {"inventory", "always"}, "preflight": {"preflight", "always"}}
    for play in read(playbook):
        for role in play.get("roles", []):
            name = role["role"]
            assert set(role["tags"]) >= always.get(name, {name}), playbook


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_roles_have_the_facts_that_their_defaults_name(playbook: Path) -> None:
    """A play gathers facts if the defaults of one of its roles come from them, whatever the role does there."""
    for play in read(playbook):
        for role in play.get("roles", []):
            folder = ANSIBLE / "roles" / role["role"]
            named = [path for path in folder.glob("[dv]*/main.yml") if "ansible_facts" in path.read_text()]
            assert not named or play.get("gather_facts", True), f"{playbook.name}: {play['name']}"


def test_a_tag_selects_one_role(play: Callable[..., Any]) -> None:
    """The others only look at their variables; the inventory and the hosts are checked."""
    inventory = ANSIBLE / "inventories" / "existing" / "hosts.yml"
    listed = play("site.yml", inventory, "--tags", "kafka", "--list-tasks").output
    assert {"inventory", "preflight", "volume", "kafka"} == set(re.findall(r"^ +(\w+) : (?!Validating)", listed, re.M))


def test_no_version_can_be_set() -> None:
    """A variable would only change labels: what is installed follows the files that pin it."""
    options = [
        name
        for role in ROLES
        for name in read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    ]
    assert [name for name in options if name.endswith("_version") and name != "service_version"] == []


def test_the_site_file_has_the_defaults_of_the_other_roles() -> None:
    """The role site_file has the same default ports, versions and paths as the other roles."""

    def default(role: str, name: str) -> Any:
        return read(ANSIBLE / "roles" / role / "defaults" / "main.yml")[f"{role}_{name}"]

    site_file = read(ANSIBLE / "roles/site_file/defaults/main.yml")
    assert site_file["site_file_ports"] == {
        "kafka": default("kafka", "port"),
        "spark": default("spark", "master_port"),
        "flink": default("flink", "rest_port"),
        "pulsar": default("pulsar", "port"),
        "pulsar_web": default("pulsar", "web_port"),
        "harmonicio": default("harmonicio", "master_port"),
        "harmonicio_data": default("harmonicio", "data_port"),
        "node_exporter": default("node_exporter", "port"),
        "load": default("load_generator", "worker_port"),
        "load_local": default("load_generator", "local_port"),
    }
    assert site_file["site_file_pulsar_message_bytes"] == default("pulsar", "message_bytes")
    assert site_file["site_file_executor_ports"] == default("spark", "executor_ports")
    for name in ("driver", "block", "source"):
        assert f"'{default('load_generator', f'{name}_ports')}'" in site_file[f"site_file_{name}_ports"]
    assert f"'{default('nfs', 'folder')}'" in site_file["site_file_folder"]
    assert f"'{default('flink', 'environment')}'" in site_file["site_file_flink_python"]
    assert site_file["site_file_user"] == default("kafka", "user") == default("pulsar", "user")
