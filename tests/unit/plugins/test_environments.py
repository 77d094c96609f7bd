"""Frameworks that have a Python environment of their own are listed, and only these can be installed."""

from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.plugins.environments import environments, install_environment


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
