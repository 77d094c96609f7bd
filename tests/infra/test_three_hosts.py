"""Tests of a site with Kafka and Spark on three new hosts with IPv6 addresses, from installation to a map.

They need root and tests/hosts.sh. The tests build on each other: each one continues where the previous one has ended.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
SCENARIO = Path(__file__).parents[2] / "scenarios" / "site-smoke.yaml"
INVENTORY = ANSIBLE / "tests" / "inventories" / "three-hosts.yml"
HOSTS = {"broker-1": "fd30:99::11", "framework-1": "fd30:99::12", "load-1": "fd30:99::13"}
Process = subprocess.CompletedProcess[str]
Play = Callable[..., Any]
Hosts = Callable[..., Process]
NewestCells = Callable[[], list[dict[str, Any]]]
RestartServices = Callable[[Path], dict[str, set[str]]]
SearchSecrets = Callable[[Mapping[str, str]], AbstractContextManager[set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("new_hosts")]


def test_site_yml_installs_all_services(play: Play, hosts: Hosts) -> None:
    """Broker, framework and load generator run, and the doctor can read the site file."""
    play("site.yml", INVENTORY)
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.stdout.count("takes connections") >= 2


def test_a_second_run_changes_nothing(play: Play) -> None:
    """No task of a second run of site.yml changes anything."""
    result = play("site.yml", INVENTORY)
    assert result.changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_check_yml_finds_no_problem(play: Play) -> None:
    """A message passes through Kafka, a job runs on Spark, and the doctor reports no problem."""
    result = play("check.yml", INVENTORY)
    assert "a message of 1000 B went through [fd30:99::11]:9092" in result.output
    assert "8 Python tasks ran on framework-1" in result.output
    assert "ok   broker-1: kafka 4.1.1 runs" in result.output


def test_the_firewall_opens_only_the_ports_of_the_roles(hosts: Hosts) -> None:
    """Another host reaches Kafka's port, but not a port that no role has opened, although a server listens there."""

    def accepts_connection(host: str, address: str, port: int) -> bool:
        script = f"import socket; socket.create_connection(('{address}', {port}), 2)"
        return hosts("exec", host, "python3", "-c", script).returncode == 0

    hosts("exec", "-d", "broker-1", "python3", "-m", "http.server", "--bind", "::", "8123")
    deadline = time.monotonic() + 30
    while not accepts_connection("broker-1", "127.0.0.1", 8123):
        assert time.monotonic() < deadline, "no server answers at 127.0.0.1:8123 of broker-1 within 30 s"
    assert accepts_connection("load-1", "fd30:99::11", 9092)
    assert not accepts_connection("load-1", "fd30:99::11", 8123)


def test_run_yml_measures_a_map(play: Play, hosts: Hosts, newest_cells: NewestCells, tmp_path: Path) -> None:
    """Every cell has a result, and the run folder with its report is on the controller.

    The controller is killed during the run: the run goes on, and the same playbook follows it to its end.
    """
    run = ["-e", f"load_generator_scenario={SCENARIO}", "-e", f"load_generator_results={tmp_path}"]
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(INVENTORY), "run.yml", *run]
    controller = subprocess.Popen(command, cwd=ANSIBLE, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while hosts("exec", "load-1", "systemctl", "is-active", "stream-bench-run").stdout.strip() != "active":
        assert time.monotonic() < deadline, "the run has not started within 60 s"
    os.killpg(controller.pid, signal.SIGKILL)
    controller.wait()
    assert "a run is going on; nothing new is started" in play("run.yml", INVENTORY, *run).output
    cells = newest_cells()
    assert len(cells) == 4
    assert [cell["status"] for cell in cells if cell["status"] in ("failed", "unsupported")] == [], cells
    assert all(cell["processed"] and not cell["lost"] and not cell["duplicated"] for cell in cells), cells
    (folder,) = tmp_path.glob("three-hosts-*")
    assert {"report.html", "trials.jsonl"} <= {path.name for path in folder.iterdir()}


def test_one_variable_secures_the_site(
    play: Play, hosts: Hosts, newest_cells: NewestCells, tmp_path: Path, search_secrets: SearchSecrets
) -> None:
    """With TLS and passwords the site works as before, and a client without them cannot connect.

    While checks and a run use them, the passwords are in no argument, log and packet, and in no environment but that of
    Spark's own account, which the engine uses for its executors.
    """
    folders = {"certificates_authority": str(tmp_path), "site_secrets": str(tmp_path / "secrets")}
    secured = json.dumps({"site_secured": True, **folders})
    play("site.yml", INVENTORY, "-e", secured)
    changes = ["grid.message_size=[1 kB]", "search.budget=25 s"]
    run = {
        "load_generator_scenario": str(SCENARIO),
        "load_generator_results": str(tmp_path),
        "load_generator_set": changes,
    }
    with search_secrets({path.name: path.read_text().strip() for path in (tmp_path / "secrets").iterdir()}) as found:
        play("check.yml", INVENTORY, "-e", secured)
        play("run.yml", INVENTORY, "-e", secured, "-e", json.dumps(run))
    assert found <= {"spark in the environment of spark"}
    assert [cell for cell in newest_cells() if cell["status"] in ("failed", "unsupported")] == []
    open_client = "AdminClient({'bootstrap.servers': '[fd30:99::11]:9092'}).list_topics(timeout=5)"
    script = f"from confluent_kafka.admin import AdminClient; {open_client}"
    assert hosts("exec", "load-1", "/opt/stream-bench/venv/bin/python", "-c", script).returncode != 0
    play("site.yml", INVENTORY)


def test_restart_yml_restarts_all_services(play: Play, restart_services: RestartServices) -> None:
    """Every service restarts, and all of them answer afterwards."""
    assert restart_services(INVENTORY) == {"broker-1": {"kafka"}, "framework-1": {"spark-master", "spark-worker"}}
    play("check.yml", INVENTORY)


def test_collect_yml_fetches_the_logs_of_all_services(play: Play, tmp_path: Path) -> None:
    """The controller has the journal of every service in a folder for each host."""
    play("collect.yml", INVENTORY, "-e", f"service_logs={tmp_path}", "-e", f"load_generator_results={tmp_path}/runs")
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.log")} == {
        "broker-1/kafka.log",
        "framework-1/spark-master.log",
        "framework-1/spark-worker.log",
    }


def test_cells_fail_when_the_broker_is_lost(hosts: Hosts, newest_cells: NewestCells) -> None:
    """If the broker is killed during a run, the cells have no rate and fail with a reason that names its address."""
    hosts("exec", "load-1", "sh", "-c", "rm -rf /var/lib/stream-bench/results/*")
    command = [str(ANSIBLE / "tests" / "hosts.sh"), "exec", "load-1", "bench", "run", "scenarios/site-smoke.yaml"]
    options = ["--site", "/etc/stream-bench/site.yaml", "--set", "systems=python/kafka", "--set", "search.budget=120 s"]
    run = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while hosts(
        "exec", "load-1", "sh", "-c", "test -s $(ls -td /var/lib/stream-bench/results/*/ | head -n 1)trials.jsonl"
    ).returncode:
        assert time.monotonic() < deadline, "no trial was stored within 120 s"
        assert run.poll() is None, run.stdout
    hosts("kill", "broker-1")
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 4, output
    cells = newest_cells()
    assert [cell["status"] for cell in cells] == ["failed", "failed"], output
    reasons = [str(cell["reason"]) for cell in cells]  # the first cell's may come from Kafka's client
    assert all("no connection" in reason and "[fd30:99::11]:9092" in reason for reason in reasons), reasons
    assert "kafka at [fd30:99::11]:9092: no connection" in reasons[1]
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.returncode == 3
    assert "BAD  kafka at [fd30:99::11]:9092: no connection" in doctor.stdout
    assert "BAD  broker-1: no metrics from [fd30:99::11]:9100" in doctor.stdout


def test_teardown_yml_removes_everything_it_installed(play: Play, hosts: Hosts) -> None:
    """Units, data, accounts, software, secrets and the firewall are gone from the hosts that still run."""
    play("teardown.yml", INVENTORY, "--limit", "framework-1,load-1,localhost")
    folders = (
        "/var/lib/spark /etc/spark /var/lib/stream-bench"
        " /etc/stream-bench /opt/stream-bench /usr/local/lib/stream-bench"
    )
    script = f"ls /etc/systemd/system | grep -c -e spark -e stream-bench; ls -d {folders}; getent passwd spark bench"
    for host in ("framework-1", "load-1"):
        assert (
            hosts("exec", host, "sh", "-c", f"{script}; /usr/sbin/nft list tables | grep stream_bench").stdout.strip()
            == "0"
        )
