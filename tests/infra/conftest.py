"""Fixtures of the tests of infra/ansible: they run playbooks, start test hosts and read the hosts' state."""

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
class PlaybookResult:
    """The result of a playbook run.

    Attributes:
        exit_code: Exit code of ansible-playbook.
        output: Its standard output and standard error together.
    """

    exit_code: int
    output: str

    @property
    def changed(self) -> dict[str, int]:
        """Number of tasks that have changed something, by host."""
        return {host: int(count) for host, count in re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", self.output, re.M)}


Play = Callable[..., PlaybookResult]
Hosts = Callable[..., "subprocess.CompletedProcess[str]"]
UnitProperty = Callable[[Iterable[str], str], dict[str, dict[str, str]]]


@pytest.fixture(scope="session")
def play() -> Play:
    """Return a function that runs a playbook with an inventory and asserts its success, or its failure if expected."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")

    def run(
        playbook: str, inventory: Path, *arguments: str, expect_failure: bool = False, seconds: float = 1200
    ) -> PlaybookResult:
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), playbook, *arguments]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        process = subprocess.run(
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
        print(process.stdout)  # noqa: T201  shown for a failed test; for every test with: tox -e infra -- -rP
        assert (process.returncode != 0) == expect_failure, process.stdout[-3000:]
        return PlaybookResult(process.returncode, process.stdout)

    return run


@pytest.fixture(scope="session")
def hosts() -> Hosts:
    """Return a function that runs tests/hosts.sh with its arguments; the container engine is started.

    Whoever selects the tests of hosts wants them run: where they cannot run, they fail.
    """
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        pytest.fail(
            f"test hosts cannot run here: {', '.join(missing) or 'not root'};"
            " apt-get install docker.io mmdebstrap iptables openssh-client",
            pytrace=False,
        )

    def run(*arguments: str, seconds: float = 600) -> "subprocess.CompletedProcess[str]":
        command = [str(ANSIBLE / "tests" / "hosts.sh"), *arguments]
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
        print(process.stdout, process.stderr)  # noqa: T201  as above
        return process

    engine = run("engine")
    if engine.returncode:
        pytest.fail(f"test hosts cannot run here: {engine.stderr.strip()}", pytrace=False)
    return run


@pytest.fixture(scope="session")
def unit_property(hosts: Hosts) -> UnitProperty:
    """Return a function that reads a systemd property of the site's units on some hosts, by host and unit.

    A host without units of the site is left out.
    """
    script = (
        "cd /etc/stream-bench/services 2>/dev/null || exit 0; for record in *.json; do"
        ' [ -e "$record" ] || continue; unit=${record%.json};'
        ' echo "$unit=$(systemctl show --property PROPERTY --value $unit)"; done'
    )

    def read(names: Iterable[str], name: str) -> dict[str, dict[str, str]]:
        outputs = {host: hosts("exec", host, "sh", "-c", script.replace("PROPERTY", name)).stdout for host in names}
        return {
            host: dict(line.split("=", 1) for line in output.splitlines()) for host, output in outputs.items() if output
        }

    return read


@pytest.fixture
def running_units(request: pytest.FixtureRequest, unit_property: UnitProperty) -> Callable[[], dict[str, set[str]]]:
    """Return a function that returns the units of the module's HOSTS that run, not as root, by host."""

    def read() -> dict[str, set[str]]:
        states = unit_property(request.module.HOSTS, "ActiveState")
        users = unit_property(request.module.HOSTS, "User")
        return {
            host: {
                unit for unit, state in of_host.items() if state == "active" and users[host][unit] not in ("", "root")
            }
            for host, of_host in states.items()
        }

    return read


@pytest.fixture
def restart_services(
    request: pytest.FixtureRequest, play: Play, unit_property: UnitProperty
) -> Callable[[Path], dict[str, set[str]]]:
    """Return a function that runs restart.yml and returns the restarted units, by host of the module's HOSTS."""

    def restart(inventory: Path) -> dict[str, set[str]]:
        start_time = "ActiveEnterTimestampMonotonic"
        before = unit_property(request.module.HOSTS, start_time)
        play("restart.yml", inventory)
        after = unit_property(request.module.HOSTS, start_time)
        return {
            host: {unit for unit, started in units.items() if started != before[host][unit]}
            for host, units in after.items()
        }

    return restart


@pytest.fixture(scope="session")
def newest_cells(hosts: Hosts) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that reads the cells of the newest run on load-1."""

    def read() -> list[dict[str, Any]]:
        process = hosts(
            "exec", "load-1", "sh", "-c", "cat $(ls -td /var/lib/stream-bench/results/*/ | head -n 1)cells.json"
        )
        return list(json.loads(process.stdout)["cells"])

    return read


@pytest.fixture(scope="module")
def new_hosts(request: pytest.FixtureRequest, hosts: Hosts) -> Iterator[None]:
    """Start the module's HOSTS, given by address, as new hosts without software; stop them afterwards."""
    up = hosts("up", *(f"{name}={address}" for name, address in request.module.HOSTS.items()))
    assert up.returncode == 0, up.stderr
    yield
    hosts("down")
