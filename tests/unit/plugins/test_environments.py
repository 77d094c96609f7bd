"""Frameworks that have a Python environment of their own are listed, and only these can be installed."""

import hashlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.config.scenario import Grid, Scenario
from bench.errors import UsageError
from bench.model.message_sizes import MessageSize
from bench.plugins.environments import environments, install_environment, installed_environments


def test_frameworks_with_an_environment_are_listed() -> None:
    """Each by the name with which it is installed; its lock file is there, and every package in it has a hash."""
    found = environments()
    assert "bytewax" in found
    for name, environment in found.items():
        assert environment.name == name
        text = environment.lock.read_text(encoding="utf-8")
        assert text.count("==") <= text.count("--hash=sha256:")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spark", "spark needs no installation; those that do: .*bytewax"),
        ("bytewaxx", "unknown framework 'bytewaxx'.*did you mean 'bytewax'?"),
    ],
)
def test_what_cannot_be_installed_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """The line says what can be."""
    with pytest.raises(UsageError, match=message):
        install_environment(name, tmp_path, pytest.fail)


def test_a_run_records_what_is_installed_of_its_frameworks(tmp_path: Path) -> None:
    """The digest of the lock file names every version; frameworks of other runs, and missing ones, are left out."""
    scenario = Scenario("x", ("bytewax/kafka", "python/kafka"), Grid((MessageSize(100),)))
    assert installed_environments(scenario, tmp_path) == {}
    environment = environments()["bytewax"]
    digest = hashlib.sha256(environment.lock.read_bytes()).hexdigest()[:12]
    folder = tmp_path / "environments" / f"bytewax-{digest}-python{environment.versions[0]}"
    (folder / "bin").mkdir(parents=True)
    for name in ("complete", "bin/python"):
        (folder / name).touch()
    assert installed_environments(scenario, tmp_path) == {"bytewax": folder.name}
    other = replace(scenario, systems=("python/kafka",))
    assert installed_environments(other, tmp_path) == {}
