"""What `make setup` installs is pinned with its hashes, at the versions that everything else is installed with."""

import re
import tomllib

import pytest

INSTALLED = ("all", "test", "check")
"""The extras that `make setup` installs."""
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^\s;\\]+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


@pytest.fixture(scope="module")
def pins(pytestconfig):
    """Return version and hashes of each package of the lock."""
    content = (pytestconfig.rootpath / "requirements.lock").read_text()
    return {
        normal(name): (version, re.findall(r"--hash=sha256:[0-9a-f]{64}", rest))
        for name, version, rest in PIN.findall(content)
    }


def normal(name):
    """Return a name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_has_a_hash(pins):
    """Without one, pip would refuse the whole lock."""
    assert len(pins) > 100
    assert [name for name, (_, hashes) in pins.items() if not hashes] == []


def test_the_lock_has_the_versions_of_the_constraints(pins, pytestconfig):
    """Those of tox, of the container image and of provisioned hosts."""
    lines = (pytestconfig.rootpath / "constraints.txt").read_text().split()
    constraints = {normal(name): version for name, _, version in (line.partition("==") for line in lines)}
    common = constraints.keys() & pins.keys()
    assert {name: pins[name][0] for name in common} == {name: constraints[name] for name in common}


def test_every_library_that_is_named_is_in_the_lock(pins, pytestconfig):
    """A new one in pyproject.toml needs a new lock."""
    project = tomllib.loads((pytestconfig.rootpath / "pyproject.toml").read_text())["project"]
    extras, asked = project["optional-dependencies"], list(project["dependencies"])
    for extra in INSTALLED:
        asked += extras[extra]
    inner = re.search(r"\[(.*)\]", extras["all"][0]).group(1).split(",")
    asked += [name for extra in inner for name in extras[extra]]
    named = {normal(re.split(r"[\[<>=; ]", one)[0]) for one in asked} - {project["name"]}
    assert named - pins.keys() == set()
