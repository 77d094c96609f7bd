"""Tests of a site with Flink and Prometheus on three new hosts.

They need root and tests/hosts.sh. The tests build on each other: each one continues where the previous one has ended.
Where this machine has Flink (`bench install flink`), it is copied to the hosts, which otherwise download it.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.cli.inputs import cache_folder
from bench.services.python_environments import installed_name
from frameworks.flink.installation import ENVIRONMENT

ROOT = Path(__file__).parents[2]
ANSIBLE = ROOT / "infra" / "ansible"
SCENARIO = ROOT / "scenarios" / "site-smoke.yaml"
EXECUTE = [str(ANSIBLE / "tests" / "hosts.sh"), "exec"]
INVENTORY = ANSIBLE / "tests" / "inventories" / "flink.yml"
HOSTS = {"framework-1": "172.30.99.12", "framework-2": "172.30.99.14", "load-1": "172.30.99.13"}
UNITS = {
    "framework-1": {"flink-jobmanager", "flink-taskmanager"},
    "framework-2": {"flink-taskmanager"},
    "load-1": {"stream-bench-prometheus"},
}
CACHE = "/opt/stream-bench/cache/stream-bench/environments"
CACHES = {
    "framework-1": CACHE,
    "framework-2": CACHE,
    "load-1": "/var/lib/stream-bench/.cache/stream-bench/environments",
}
UNPACK = """
mkdir -p "$0" && tar -x -C "$0" && cd "$0/$1" && chmod a+w .
ln -sf /usr/bin/python3 bin/python && ln -sf python bin/python3 && sed -i 's|^home = .*|home = /usr/bin|' pyvenv.cfg
"""
"""sh: an environment from the standard input; its Python is the host's, of the same version."""
Play = Callable[..., Any]
Hosts = Callable[..., "subprocess.CompletedProcess[str]"]
RestartServices = Callable[[Path], dict[str, set[str]]]
RunningUnits = Callable[[], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("hosts_with_flink")]


@pytest.fixture(scope="module")
def hosts_with_flink(new_hosts: None) -> None:
    """New hosts, with a copy of this machine's Flink where there is one."""
    name = installed_name(ENVIRONMENT, cache_folder())
    if name is None:
        return
    pack = ["tar", "-c", "-C", str(cache_folder() / "environments"), "--exclude=harness-*", name]
    for host, folder in CACHES.items():
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packed:
            unpack = [*EXECUTE, "-i", host, "sh", "-ec", UNPACK, folder, name]
            subprocess.run(unpack, stdin=packed.stdout, timeout=300, check=True)


def test_site_yml_installs_all_services(play: Play, running_units: RunningUnits) -> None:
    """The JobManager, both TaskManagers and Prometheus run, none of them as root."""
    play("site.yml", INVENTORY, fast=True)
    assert running_units() == UNITS


def test_check_yml_finds_no_problem(play: Play) -> None:
    """Messages pass through a job on both TaskManagers, Prometheus reads all hosts, and the doctor is content."""
    result = play("check.yml", INVENTORY, fast=True)
    assert "1000 messages went through a job in 172.30.99.12:8083" in result.output
    assert "Prometheus at 172.30.99.13:9090 reads 3 node exporters" in result.output
    assert "ok   framework-2: flink-taskmanager 2.3.0 runs" in result.output


def test_a_second_run_changes_nothing(play: Play) -> None:
    """No task of a second run of site.yml changes anything."""
    result = play("site.yml", INVENTORY, fast=True)
    assert result.changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_run_yml_measures_a_cell(play: Play, newest_cells: Callable[[], list[dict[str, Any]]], tmp_path: Path) -> None:
    """Flink reads the load generator's socket, and nothing is lost."""
    variables = {
        "load_generator_scenario": str(SCENARIO),
        "load_generator_results": str(tmp_path),
        "load_generator_set": ["systems=[flink/tcp]", "grid.message_size=[1 kB]", "search.budget=60 s"],
    }
    play("run.yml", INVENTORY, "-e", json.dumps(variables), fast=True)
    (cell,) = newest_cells()
    assert cell["status"] not in ("failed", "unsupported"), cell
    assert cell["processed"]
    assert (cell["lost"], cell["duplicated"]) == (0, 0), cell


def test_restart_yml_restarts_all_services(play: Play, restart_services: RestartServices) -> None:
    """Every service restarts, and a job runs afterwards."""
    assert restart_services(INVENTORY) == UNITS
    play("check.yml", INVENTORY, fast=True)


def test_teardown_yml_removes_everything_it_installed(play: Play, hosts: Hosts) -> None:
    """Units, data, the account, software and the firewall are gone from the hosts of Flink."""
    play("teardown.yml", INVENTORY, fast=True)
    folders = "/var/lib/flink /etc/flink /etc/stream-bench /opt/stream-bench"
    script = (
        f"ls /etc/systemd/system | grep -c -e flink -e stream-bench; ls -d {folders} 2>/dev/null; getent passwd flink"
    )
    for host in ("framework-1", "framework-2"):
        checked = hosts("exec", host, "sh", "-c", f"{script}; /usr/sbin/nft list tables | grep stream_bench")
        assert checked.stdout.strip() == "0"
