"""What tests of the Ansible part stand on: Ansible itself, where it is installed, and the folder it works in."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "infra" / "ansible"
Play = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def play() -> Play:
    """What runs a playbook, given its name, an inventory and more arguments: how it ended, with both outputs in stdout."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")

    def run(playbook: str, inventory: Path, *arguments: str, seconds: float = 1200) -> "subprocess.CompletedProcess[str]":
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), playbook, *arguments]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        return subprocess.run(
            command,
            cwd=ANSIBLE,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )

    return run
