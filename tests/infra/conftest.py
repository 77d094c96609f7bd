"""Fixtures of the tests of infra/ansible: they run playbooks, start test hosts and read the hosts' state."""

import importlib.util
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "infra" / "ansible"
TOOLS = ("dockerd", "mmdebstrap", "iptables", "rsync")
EXECUTE = (str(ANSIBLE / "tests" / "hosts.sh"), "exec")
SEARCH = """
import json, pathlib, pwd, subprocess, sys

def search(where, content):
    for name, text in secrets.items():
        if text.encode() in content:
            print(name, "in", where)

def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""

secrets = json.load(sys.stdin)
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        account = pwd.getpwuid(process.stat().st_uid).pw_name
    except OSError:
        continue
    search(f"the arguments of {account}", read(process / "cmdline"))
    search(f"the environment of {account}", read(process / "environ"))
for folder in sys.argv[1:]:
    for path in pathlib.Path(folder).rglob("*"):
        search(path, read(path) if path.is_file() else b"")
if len(sys.argv) > 1:
    search("the journal", subprocess.run(["journalctl", "--no-pager"], capture_output=True, check=True).stdout)
"""
"""Program for a host: reads secrets from its standard input, as JSON, and prints where they are."""
CONTROL = "import socket, time; socket.create_connection(('{address}', 22)).sendall(b'{text}'); time.sleep(6)"
"""Program whose argument and packets have the text, so that a search that finds nothing is known to work."""
ETH_P_ALL = 3
PACKET_BYTES = 65_536
CAPTURE_BUFFER_BYTES = 64_000_000


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


def mitogen_environment() -> dict[str, str]:
    """Return the variables with which ansible-playbook keeps Python processes on the hosts: 2.5 times faster here."""
    package = importlib.util.find_spec("ansible_mitogen")
    if package is None or package.origin is None:
        pytest.fail("mitogen is not installed; run: tox -e infra", pytrace=False)
    return {
        "ANSIBLE_STRATEGY": "mitogen_linear",
        "ANSIBLE_STRATEGY_PLUGINS": str(Path(package.origin).parent / "plugins" / "strategy"),
        "ANSIBLE_HOST_KEY_CHECKING": "False",  # mitogen does not read the SSH options of the inventories
    }


@pytest.fixture(scope="session")
def play() -> Play:
    """Return a function that runs a playbook with an inventory and asserts its success, or its failure if expected.

    With `fast` it uses mitogen; a module then runs in a fork, as without forks one saw what an earlier one had changed.
    """
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")

    def run(
        playbook: str,
        inventory: Path,
        *arguments: str,
        expect_failure: bool = False,
        seconds: float = 1200,
        fast: bool = False,
    ) -> PlaybookResult:
        command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), playbook, *arguments]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"}
        if fast:
            environment |= mitogen_environment()
            command += ["-e", "mitogen_task_isolation=fork"]
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
            " apt-get install docker.io mmdebstrap iptables openssh-client rsync",
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


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the controller with a site's certificates and secrets."""
    return tmp_path_factory.mktemp("secured")


@pytest.fixture
def play_site(request: pytest.FixtureRequest, play: Play, secured: Path) -> Play:
    """Return a function that runs a playbook, by mitogen, on the secured site of the module's INVENTORY."""
    folders = {"certificates_authority": str(secured / "tls"), "site_secrets": str(secured / "secrets")}
    variables = json.dumps({"site_secured": True, **folders})
    return lambda playbook, *arguments: play(playbook, request.module.INVENTORY, "-e", variables, *arguments, fast=True)


@pytest.fixture
def run_python(hosts: Hosts) -> Callable[..., str]:
    """Return a function that runs Python code on load-1 with the harness's packages.

    It returns the last line of the output: Pulsar's client writes before it that a broker does not answer.
    """

    def run(script: str, *arguments: object) -> str:
        process = hosts("exec", "load-1", "/opt/stream-bench/venv/bin/python", "-c", script, *map(str, arguments))
        assert process.returncode == 0, process.stderr
        return process.stdout.strip().rpartition("\n")[2]

    return run


@pytest.fixture
def play_while_sending(
    request: pytest.FixtureRequest, play_site: Play, run_python: Callable[..., str]
) -> Callable[[str, int], int]:
    """Return a function that runs a playbook while the module's SEND sends numbers, three every two seconds.

    It takes the first number, and returns the one after the last.
    """

    def run(playbook: str, first: int) -> int:
        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play_site, playbook)
            while not playing.done():
                run_python(request.module.SEND, *range(first, first + 3))
                first += 3
                time.sleep(2)
            playing.result()
        return first

    return run


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


class SecretSearch:
    """A search for secrets on hosts and in packets, while its block runs: `with SecretSearch(...) as found`.

    When the block has ended, the set `found` has lines such as "kafka in the arguments of root".
    """

    def __init__(self, addresses: Mapping[str, str], texts: Mapping[str, str]) -> None:
        self._addresses, self._control = addresses, secrets.token_urlsafe(32)
        self._texts = {**texts, "control": self._control}
        self._found: set[str] = set()
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(2)

    def __enter__(self) -> set[str]:
        self._watches = [self._pool.submit(watch) for watch in (self._watch_processes, self._watch_packets)]
        first, last = next(iter(self._addresses)), [*self._addresses.values()][-1]
        control = CONTROL.format(address=last, text=self._control)
        subprocess.run([*EXECUTE, first, "python3", "-c", control], timeout=60, check=True)
        return self._found

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown()
        for watch in self._watches:
            watch.result()
        for host in self._addresses:
            self._search_host(host, "/var/log", "/tmp", "/var/lib/stream-bench", "/var/lib/harmonicio/pes")
        assert {"control in the arguments of root", "control in a packet"} <= self._found
        self._found -= {line for line in self._found if line.startswith("control ")}

    def _search_host(self, host: str, *folders: str) -> None:
        command = [*EXECUTE, "-i", host, "python3", "-c", SEARCH, *folders]
        asked = json.dumps(self._texts)
        found = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=300, check=True).stdout
        self._found.update(found.splitlines())

    def _watch_processes(self) -> None:
        while not self._ended.wait(1):
            for host in self._addresses:
                self._search_host(host)

    def _watch_packets(self) -> None:
        sought = {name: text.encode() for name, text in self._texts.items()}
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as capture:
            capture.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CAPTURE_BUFFER_BYTES)
            capture.settimeout(0.5)
            while not self._ended.is_set():
                with suppress(TimeoutError):
                    packet = capture.recv(PACKET_BYTES)
                    self._found.update(f"{name} in a packet" for name, text in sought.items() if text in packet)


@pytest.fixture
def search_secrets(request: pytest.FixtureRequest, hosts: Hosts) -> Callable[[Mapping[str, str]], SecretSearch]:
    """Return a function that takes secrets by name and returns a search for them on the module's HOSTS."""
    return lambda texts: SecretSearch(request.module.HOSTS, texts)
