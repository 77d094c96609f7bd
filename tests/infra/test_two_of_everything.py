"""Tests of a site with two workers of every framework and two load hosts, on three new hosts that share the services.

They need root and tests/hosts.sh. The tests build on each other: each one continues where the previous one has ended.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "site-smoke.yaml"
INVENTORY = ROOT / "infra" / "ansible" / "tests" / "inventories" / "two-of-everything.yml"
HOSTS = {"node-1": "172.30.99.11", "node-2": "172.30.99.12", "load-1": "172.30.99.13"}
UNITS = {
    "node-1": {"kafka", "spark-master", "spark-worker", "harmonicio-master", "harmonicio-worker"},
    "node-2": {"kafka", "spark-worker", "harmonicio-worker", "load-worker"},
    "load-1": {"kafka", "pulsar-store", "pulsar-bookie", "pulsar-broker", "load-worker"},
}
SYSTEMS = ["spark/kafka", "harmonicio/stream", "python/pulsar"]
WORKER_CPUS = "0.6"
"""CPUs of a host with a Spark worker: two of them leave this machine enough for the broker and the load."""
CPU_BOUND = (
    "systems=[spark/kafka]", "grid.message_size=[1 kB]", "grid.cpu_cost=[20 ms]", "search.budget=100 s",
    "search.precision=10 %", "timing.window=6 s",
)  # fmt: skip
NEWEST_RUN = "cat $(ls -td /var/lib/stream-bench/results/*/ | head -n 1)run.json"
Play = Callable[..., Any]
Hosts = Callable[..., subprocess.CompletedProcess[str]]
NewestCells = Callable[[], list[dict[str, Any]]]
RunningUnits = Callable[[], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("new_hosts")]


def test_site_yml_installs_all_services(play: Play, running_units: RunningUnits) -> None:
    """Every service runs on each of its hosts, none of them as root."""
    play("site.yml", INVENTORY)
    assert running_units() == UNITS


def test_both_workers_take_part(play: Play) -> None:
    """Tasks of one Spark job run on both workers, and messages pass both brokers and HarmonicIO."""
    result = play("check.yml", INVENTORY)
    assert "8 Python tasks ran on node-1, node-2" in result.output
    assert "a message of 1000 B went through 172.30.99.11:9092,172.30.99.12:9092,172.30.99.13:9092" in result.output
    assert "a message of 1000 B went through 172.30.99.13:6650" in result.output
    assert "a message went through an engine of 172.30.99.11:8090" in result.output
    assert "ok   node-2: harmonicio-worker" in result.output


def test_four_load_workers_on_two_hosts_send_one_schedule(
    play: Play, hosts: Hosts, newest_cells: NewestCells, tmp_path: Path
) -> None:
    """Each system processes every message exactly once."""
    variables = {
        "load_generator_scenario": str(SCENARIO),
        "load_generator_results": str(tmp_path),
        "load_generator_set": [f"systems=[{','.join(SYSTEMS)}]", "grid.message_size=[1 kB]", "search.budget=30 s"],
    }
    play("run.yml", INVENTORY, "-e", json.dumps(variables))
    cells = newest_cells()
    assert [cell["system"] for cell in cells] == SYSTEMS
    assert [cell for cell in cells if cell["status"] in ("failed", "unsupported")] == []
    assert all(cell["processed"] and not cell["lost"] and not cell["duplicated"] for cell in cells), cells
    run = json.loads(hosts("exec", "load-1", "sh", "-c", NEWEST_RUN).stdout)
    assert run["scenario"]["load"]["workers"] == 4


def test_a_second_worker_doubles_the_rate(hosts: Hosts, newest_cells: NewestCells) -> None:
    """Two Spark workers on hosts with a CPU limit sustain twice the rate of one, within a tenth and the intervals."""
    for host in ("node-1", "node-2"):
        assert hosts("limit", host, WORKER_CPUS).returncode == 0
    results = {}
    for workers in (1, 2):
        site = f"/var/lib/stream-bench/site-{workers}.yaml"
        only = f"sed -e /^load:/d -e 's/^  cores: 2$/  cores: {workers}/' /etc/stream-bench/site.yaml > {site}"
        changes = " ".join(f"--set '{one}'" for one in CPU_BOUND)
        run = f"bench run scenarios/site-smoke.yaml --site {site} {changes}"
        done = hosts("exec", "load-1", "sh", "-c", f"{only} && {run}")
        assert done.returncode == 0, done.stdout + done.stderr
        (results[workers],) = newest_cells()
    print(results)  # noqa: T201  the rates, for the record of the run
    assert {cell["status"] for cell in results.values()} == {"measured"}
    assert results[2]["high_hz"] >= 0.9 * 2 * results[1]["low_hz"]


def test_teardown_yml_removes_everything_it_installed(play: Play, hosts: Hosts) -> None:
    """Units, folders and accounts are gone from all hosts."""
    play("teardown.yml", INVENTORY)
    made = "/etc/stream-bench /opt/stream-bench /etc/kafka /etc/pulsar /etc/spark /etc/harmonicio /var/lib/kafka"
    accounts = "getent passwd kafka pulsar spark harmonicio bench load-worker"
    for host in HOSTS:
        assert hosts("exec", host, "sh", "-c", f"ls -d {made} 2>/dev/null; {accounts}").stdout == ""
