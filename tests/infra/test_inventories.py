"""Tests of the inventory check: it rejects invalid inventories before any host is changed, and accepts valid ones."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

TESTS = Path(__file__).parent
ANSIBLE = TESTS.parents[1] / "infra" / "ansible"
Play = Callable[..., Any]
FILTERS = ANSIBLE / "roles" / "inventory" / "filter_plugins"
INVALID = sorted((TESTS / "wrong").glob("*.yml"))
VALID = sorted([*(ANSIBLE / "tests" / "inventories").glob("*.yml"), *(ANSIBLE / "inventories").glob("*/hosts.yml")])


def load(name: str) -> ModuleType:
    """Return the module of a filter."""
    spec = importlib.util.spec_from_file_location(name, FILTERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find_errors(path: Path) -> list[str]:
    """Return the errors of an inventory as Ansible reads it."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.vars.manager import VariableManager

    loader = DataLoader()
    inventory = InventoryManager(loader, [str(path)])
    variables = VariableManager(loader, inventory)
    groups = inventory.get_groups_dict()
    hosts = {host: variables.get_vars(host=inventory.get_host(host)) for host in groups["all"]}
    return [
        *load("group_errors").group_errors(groups, hosts),
        *load("variable_errors").variable_errors(groups, hosts),
    ]


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_inventory_is_rejected(path: Path) -> None:
    """Each error has one line, and there are no other lines."""
    expected = [
        line.removeprefix("# expect: ") for line in path.read_text().splitlines() if line.startswith("# expect: ")
    ]
    errors = find_errors(path)
    assert all("\n" not in line for line in errors)
    assert all(any(text in line for line in errors) for text in expected), errors
    assert all(any(text in line for text in expected) for line in errors), errors


@pytest.mark.parametrize("path", VALID, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_valid_inventory_is_accepted(path: Path) -> None:
    """The inventories that the project ships and tests with have no errors."""
    assert find_errors(path) == []


def test_an_invalid_inventory_stops_the_playbook_before_any_host(play: Play) -> None:
    """The playbook ends with its first play, which prints the errors and connects to no host."""
    result = play("site.yml", TESTS / "wrong" / "three-errors.yml", expect_failure=True)
    assert result.exit_code == 2
    assert "group pulsar: found 2 hosts; allowed: 1 or 3" in result.output
    assert "Gathering Facts" not in result.output


def test_a_missing_inventory_file_is_rejected(play: Play) -> None:
    """The playbook fails, where Ansible alone would succeed without hosts."""
    result = play("site.yml", TESTS / "wrong" / "missing.yml", expect_failure=True)
    assert "missing.yml" in result.output


@pytest.mark.parametrize(
    "playbook",
    [
        "site",
        "brokers",
        "frameworks",
        "monitoring",
        "load",
        "check",
        "run",
        "restart",
        "upgrade",
        "collect",
        "teardown",
    ],
)
def test_every_playbook_checks_the_inventory_first(playbook: str) -> None:
    """The first play of every playbook is the inventory check."""
    assert (
        yaml.safe_load((ANSIBLE / f"{playbook}.yml").read_text())[0]["ansible.builtin.import_playbook"]
        == "inventory.yml"
    )


def test_a_limit_does_not_skip_the_inventory_check(play: Play) -> None:
    """A run that is limited to one host is rejected as well, and Ansible does not connect to the host."""
    result = play("run.yml", TESTS / "wrong" / "two-brokers.yml", "--limit", "b1", expect_failure=True)
    assert "group pulsar: found 2 hosts; allowed: 1 or 3" in result.output
    assert "unreachable=0" in result.output


def test_the_inventory_check_has_the_default_ports_of_the_roles() -> None:
    """The ports of the rule are the defaults of the roles."""
    for group, ports in load("group_errors").PORTS.items():
        named = {"all": "node_exporter", "monitoring": "prometheus"}
        named |= dict.fromkeys(("load_master", "load_workers"), "load_generator")
        role = named.get(group, group.partition("_")[0])
        defaults = yaml.safe_load((ANSIBLE / "roles" / role / "defaults" / "main.yml").read_text())
        assert ports == {name: defaults[name] for name in ports}


def test_an_old_python_is_rejected_with_one_line(play: Play, tmp_path: Path) -> None:
    """A host with an old Python is reported before anything is changed on any host."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"h1": local}}}))
    result = play("hosts.yml", tmp_path / "hosts.yml", "-e", "preflight_min_python=99.1", expect_failure=True)
    assert "host h1: has Python 3." in result.output
    assert "allowed: 99.1 and later" in result.output
    assert result.changed == {"h1": 0}
