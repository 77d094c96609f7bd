"""Three fresh hosts become a site by one command, and a map is drawn over them by a second; as root, with tests/hosts.sh.

The tests stand in the order of an operator's day, and each goes on from where the one before it has left the hosts.
"""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
SCENARIO = Path(__file__).parents[2] / "scenarios" / "site-smoke.yaml"
INVENTORY = ANSIBLE / "tests" / "inventories" / "three-hosts.yml"
HOSTS = {"broker-1": "172.30.99.11", "framework-1": "172.30.99.12", "load-1": "172.30.99.13"}
Done = subprocess.CompletedProcess[str]
Play = Callable[..., Any]
Hosts = Callable[..., Done]
Cells = Callable[[], list[dict[str, Any]]]
Restarted = Callable[[Path], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("fresh")]


def test_one_command_provisions_them(play: Play, hosts: Hosts) -> None:
    """Brokers, frameworks and load stand, and the site file is written."""
    play("site.yml", INVENTORY)
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.stdout.count("takes connections") >= 2


def test_a_second_time_changes_nothing(play: Play) -> None:
    """Every role finds its work done."""
    done = play("site.yml", INVENTORY)
    assert done.changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_it_is_used(play: Play) -> None:
    """A message goes through Kafka, a job runs on Spark, and the doctor finds nothing wrong."""
    done = play("check.yml", INVENTORY)
    assert "a message of 1000 B went through 172.30.99.11:9092" in done.said
    assert "8 Python tasks ran on framework-1" in done.said
    assert "ok   broker-1: kafka 4.1.1 runs" in done.said


def test_the_firewall_opens_only_what_roles_name(hosts: Hosts) -> None:
    """From another host of the site Kafka answers, and a port that no role has named does not, though on its own host it does."""

    def answers(host: str, address: str, port: int) -> bool:
        probe = f"import socket; socket.create_connection(('{address}', {port}), 2)"
        return hosts("exec", host, "python3", "-c", probe).returncode == 0

    hosts("exec", "-d", "broker-1", "python3", "-m", "http.server", "8123")
    deadline = time.monotonic() + 30
    while not answers("broker-1", "127.0.0.1", 8123):
        assert time.monotonic() < deadline, "nothing answers at 127.0.0.1:8123 of broker-1 within 30 s"
    assert answers("load-1", "172.30.99.11", 9092)
    assert not answers("load-1", "172.30.99.11", 8123)


def test_a_second_command_draws_a_map(play: Play, cells: Cells, tmp_path: Path) -> None:
    """Every cell has a result, and the run's folder with its report comes back."""
    run = ["-e", f"load_generator_scenario={SCENARIO}", "-e", f"load_generator_results={tmp_path}"]
    play("run.yml", INVENTORY, *run)
    found = cells()
    assert len(found) == 4
    assert [cell["status"] for cell in found if cell["status"] in ("failed", "unsupported")] == [], found
    assert all(cell["processed"] and not cell["lost"] and not cell["duplicated"] for cell in found), found
    (packed,) = tmp_path.glob("*.tar.gz")
    cached_resource = subprocess.run(["tar", "-tzf", packed], capture_output=True, text=True, check=True).stdout
    assert "report.html" in cached_resource
    assert "trials.jsonl" in cached_resource


def test_one_variable_secures_it(play: Play, hosts: Hosts, tmp_path: Path) -> None:
    """With a password and TLS everything works as before, and who shows neither is not let in."""
    secured = {"site_secured": True, "site_password": "a password for tests", "certificates_authority": str(tmp_path)}
    play("site.yml", INVENTORY, "-e", json.dumps(secured))
    play("check.yml", INVENTORY, "-e", json.dumps(secured))
    open_client = "AdminClient({'bootstrap.servers': '172.30.99.11:9092'}).list_topics(timeout=5)"
    asked = f"from confluent_kafka.admin import AdminClient; {open_client}"
    assert hosts("exec", "load-1", "/opt/stream-bench/venv/bin/python", "-c", asked).returncode != 0
    play("site.yml", INVENTORY)


def test_services_start_anew(play: Play, restarted: Restarted) -> None:
    """What the harness may ask for between cells: each of them does, and after it they answer again."""
    assert restarted(INVENTORY) == {"broker-1": {"kafka"}, "framework-1": {"spark-master", "spark-worker"}}
    play("check.yml", INVENTORY)


def test_logs_come_back(play: Play, tmp_path: Path) -> None:
    """The journal of every service, by host."""
    play("collect.yml", INVENTORY, "-e", f"service_logs={tmp_path}", "-e", f"load_generator_results={tmp_path}")
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.log")} == {
        "broker-1/kafka.log",
        "framework-1/spark-master.log",
        "framework-1/spark-worker.log",
    }


def test_a_host_that_is_gone_is_reported_as_such(hosts: Hosts, cells: Cells) -> None:
    """A run whose broker loses its power says so: no rate, no verdict on Kafka, and the cells fail with the host's address."""
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
        assert time.monotonic() < deadline, "no trial was made within 120 s"
        assert run.poll() is None, run.stdout
    hosts("kill", "broker-1")
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 4, said
    found = cells()
    assert [cell["status"] for cell in found] == ["failed", "failed"], said
    assert all("kafka at 172.30.99.11:9092: no connection" in str(cell["reason"]) for cell in found), found
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.returncode == 3
    assert "BAD  kafka at 172.30.99.11:9092: no connection" in doctor.stdout
    assert "BAD  broker-1: no metrics from 172.30.99.11:9100" in doctor.stdout


def test_nothing_is_left_where_it_was(play: Play, hosts: Hosts) -> None:
    """Teardown removes units, data, accounts, software and secrets from the hosts that are still there, and the firewall last."""
    play("teardown.yml", INVENTORY, "--limit", "framework-1,load-1,localhost")
    folders = "/var/lib/spark /etc/spark /var/lib/stream-bench /etc/stream-bench /opt/stream-bench /usr/local/lib/stream-bench"
    asked = f"ls /etc/systemd/system | grep -c -e spark -e stream-bench; ls -d {folders}; getent passwd spark bench"
    for host in ("framework-1", "load-1"):
        assert (
            hosts("exec", host, "sh", "-c", f"{asked}; /usr/sbin/nft list tables | grep stream_bench").stdout.strip()
            == "0"
        )
