"""A wrong inventory is refused, a line for each mistake, before anything is touched; a right one is not."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ANSIBLE = HERE.parents[1] / "infra" / "ansible"
Play = Callable[..., Any]
WRONG = sorted((HERE / "wrong").glob("*.yml"))
RIGHT = sorted([*(ANSIBLE / "tests" / "inventories").glob("*.yml"), *(ANSIBLE / "inventories").glob("*/hosts.yml")])


@pytest.fixture(scope="session")
def rules() -> ModuleType:
    """The filter's own module."""
    path = ANSIBLE / "roles" / "inventory" / "filter_plugins" / "inventory_errors.py"
    spec = importlib.util.spec_from_file_location("inventory_errors", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["inventory_errors"] = module
    spec.loader.exec_module(module)
    return module


def mistakes(rules: ModuleType, path: Path) -> list[str]:
    """What the rules say of an inventory as Ansible reads it."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.vars.manager import VariableManager

    loader = DataLoader()
    inventory = InventoryManager(loader, [str(path)])
    variables = VariableManager(loader, inventory)
    groups = inventory.get_groups_dict()
    return rules.inventory_errors(
        groups, {host: variables.get_vars(host=inventory.get_host(host)) for host in groups["all"]}
    )


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_inventory_is_refused(rules: ModuleType, path: Path) -> None:
    """Each mistake has its line, and there are no other lines."""
    expected = [
        line.removeprefix("# expect: ") for line in path.read_text().splitlines() if line.startswith("# expect: ")
    ]
    said = mistakes(rules, path)
    assert all("\n" not in line for line in said)
    assert all(any(text in line for line in said) for text in expected), said
    assert all(any(text in line for text in expected) for line in said), said


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_right_inventory_is_taken(rules: ModuleType, path: Path) -> None:
    """The inventories that we ship and test with have no mistakes."""
    assert mistakes(rules, path) == []


def test_nothing_is_touched(play: Play) -> None:
    """A playbook ends with the first play, whose lines are the mistakes alone."""
    done = play("site.yml", HERE / "wrong" / "three-errors.yml", refused=True)
    assert done.code == 2
    assert "group kafka: found 2 hosts; allowed: 1 or 3" in done.said
    assert "Gathering Facts" not in done.said


def test_a_file_that_is_not_there_is_refused(play: Play) -> None:
    """Ansible alone would find no hosts, and be content."""
    done = play("site.yml", HERE / "wrong" / "there-is-none.yml", refused=True)
    assert "there-is-none.yml" in done.said


@pytest.mark.parametrize(
    "playbook", ["site", "brokers", "frameworks", "load", "check", "run", "restart", "collect", "teardown"]
)
def test_every_playbook_looks_first(playbook: str) -> None:
    """Whatever it does, it does not do it with a wrong inventory."""
    assert (
        yaml.safe_load((ANSIBLE / f"{playbook}.yml").read_text())[0]["ansible.builtin.import_playbook"]
        == "inventory.yml"
    )


def test_no_limit_leaves_the_look_out(play: Play) -> None:
    """A run on one host alone is refused as well, and the host is not asked for anything."""
    done = play("run.yml", HERE / "wrong" / "two-brokers.yml", "--limit", "b1", refused=True)
    assert "group kafka: found 2 hosts; allowed: 1 or 3" in done.said
    assert "unreachable=0" in done.said


def test_the_rules_know_the_ports_of_the_roles(rules: ModuleType) -> None:
    """A role's default is what the rule takes where an inventory says nothing."""
    for group, ports in rules.PORTS.items():
        role = "load_generator" if group == "load_master" else group.removesuffix("_master").removesuffix("_workers")
        defaults = yaml.safe_load((ANSIBLE / "roles" / role / "defaults" / "main.yml").read_text())
        assert ports == {name: defaults[name] for name in ports}


def test_an_older_python_is_refused_in_a_line(play: Play, tmp_path: Path) -> None:
    """The wheel could not be installed there; nothing has been changed on any host."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"h1": here}}}))
    done = play("hosts.yml", tmp_path / "hosts.yml", "-e", "preflight_min_python=99.1", refused=True)
    assert "host h1: has Python 3." in done.said
    assert "allowed: 99.1 and later" in done.said
    assert done.changed == {"h1": 0}
