"""What tests of the Ansible part stand on: Ansible itself, where it is installed, and the folder it works in."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "infra" / "ansible"
TOOLS = ("dockerd", "mmdebstrap", "iptables")


@dataclass(frozen=True)
class Played:
    """How a playbook ended.

    Attributes:
        code: What it exited with.
        said: Both of its outputs.
    """

    code: int
    said: str

    @property
    def changed(self) -> dict[str, int]:
        """By host: how many tasks have changed something."""
        return {host: int(count) for host, count in re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", self.said, re.M)}


Play = Callable[..., Played]
Hosts = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def play() -> Play:
    """What runs a playbook, given its name, an inventory and more arguments; one that must not end well is said to be `refused`."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")

    def run(playbook: str, inventory: Path, *arguments: str, refused: bool = False, seconds: float = 1200) -> Played:
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), playbook, *arguments]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        done = subprocess.run(
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
        print(done.stdout)  # noqa: T201  shown where a test fails; of every test by: tox -e infra -- -rP
        assert (done.returncode != 0) == refused, done.stdout[-3000:]
        return Played(done.returncode, done.stdout)

    return run


@pytest.fixture(scope="session")
def hosts() -> Hosts:
    """What calls tests/hosts.sh, given its words: how it ended, with what it said."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            f"hosts cannot be made here: {', '.join(missing) or 'not root'}; apt-get install docker.io mmdebstrap iptables"
        )

    def call(*words: str, seconds: float = 600) -> "subprocess.CompletedProcess[str]":
        command = [str(ANSIBLE / "tests" / "hosts.sh"), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
        print(done.stdout, done.stderr)  # noqa: T201  as above
        return done

    engine = call("engine")
    if engine.returncode:
        pytest.skip(f"hosts cannot be made here: {engine.stderr.strip()}")
    return call


@pytest.fixture(scope="session")
def units(hosts: Hosts) -> Callable[[Iterable[str], str], dict[str, dict[str, str]]]:
    """What systemd says of the site's units, given hosts and a property: by host, by unit; a host without units is left out."""
    asked = (
        "cd /etc/stream-bench/services 2>/dev/null || exit 0; for note in *.json; do"
        ' [ -e "$note" ] || continue; unit=${note%.json}; echo "$unit=$(systemctl show --property PROPERTY --value $unit)"; done'
    )

    def ask(names: Iterable[str], name: str) -> dict[str, dict[str, str]]:
        said = {host: hosts("exec", host, "sh", "-c", asked.replace("PROPERTY", name)).stdout for host in names}
        return {host: dict(line.split("=", 1) for line in lines.splitlines()) for host, lines in said.items() if lines}

    return ask


@pytest.fixture
def restarted(
    request: pytest.FixtureRequest, play: Play, units: Callable[..., Any]
) -> Callable[[Path], dict[str, set[str]]]:
    """What plays restart.yml with an inventory: by host of the module's HOSTS, the units that have started anew."""

    def run(inventory: Path) -> dict[str, set[str]]:
        moment = "ActiveEnterTimestampMonotonic"
        before = units(request.module.HOSTS, moment)
        play("restart.yml", inventory)
        after = units(request.module.HOSTS, moment)
        return {
            host: {unit for unit, at in of_host.items() if at != before[host][unit]} for host, of_host in after.items()
        }

    return run


@pytest.fixture(scope="session")
def cells(hosts: Hosts) -> Callable[[], list[dict[str, Any]]]:
    """What gives the cells of the newest run on load-1."""

    def newest() -> list[dict[str, Any]]:
        shown = hosts(
            "exec", "load-1", "sh", "-c", "cat $(ls -td /var/lib/stream-bench/results/*/ | head -n 1)cells.json"
        )
        return list(json.loads(shown.stdout)["cells"])

    return newest


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest, hosts: Hosts) -> Iterator[None]:
    """The module's HOSTS, by address, with nothing on them; nothing of them is left afterwards."""
    up = hosts("up", *(f"{name}={address}" for name, address in request.module.HOSTS.items()))
    assert up.returncode == 0, up.stderr
    yield
    hosts("down")
