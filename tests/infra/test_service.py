"""Tests of the role `service`, run on this machine as root in a temporary folder."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunRole = Callable[..., None]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the role needs root to set the owner of its files")


@pytest.fixture
def run_role(play: Callable[..., Any], tmp_path: Path) -> RunRole:
    """Return a function that runs the role with variables, for an account that exists already."""
    playbook = tmp_path / "service.yml"
    playbook.write_text(
        json.dumps([{"hosts": "all", "connection": "local", "gather_facts": False, "roles": ["service"]}])
    )
    defaults = {
        "site_networks": [],
        "service_name": "test",
        "service_user": "root",
        "service_records": str(tmp_path / "records"),
        "ansible_python_interpreter": sys.executable,
    }

    def run(action: str, folder: Path) -> None:
        variables = defaults | {"service_action": action, "service_folder": str(folder)}
        play(str(playbook), "host-1,", "-e", json.dumps(variables))

    return run


def test_teardown_takes_the_folders_of_earlier_inventories(run_role: RunRole, tmp_path: Path) -> None:
    """A folder that was there before stays, and so does an account."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for folder in (tmp_path / "first", theirs, tmp_path / "second"):
        run_role("prepare", folder)
    run_role("purge", tmp_path / "second")
    assert [(tmp_path / name).exists() for name in ("first", "theirs", "second")] == [False, True, False]
    assert list((tmp_path / "records" / "folders").iterdir()) == []
