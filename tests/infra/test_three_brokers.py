"""Tests of a Kafka cluster on three new hosts: it loses one node and no message. They need root and tests/hosts.sh.

The tests build on each other: each one continues with the hosts as the previous one left them.
"""

import ast
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

INVENTORY = Path(__file__).parents[2] / "infra" / "ansible" / "tests" / "inventories" / "three-brokers.yml"
HOSTS = {"broker-1": "172.30.99.11", "broker-2": "172.30.99.12", "load-1": "172.30.99.13"}
Play = Callable[..., Any]
Hosts = Callable[..., subprocess.CompletedProcess[str]]
RestartServices = Callable[[Path], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1200), pytest.mark.usefixtures("new_hosts")]

CLUSTER = '{"bootstrap.servers": "172.30.99.11:9092,172.30.99.12:9092,172.30.99.13:9092"'
SEND = f"""
import sys
from confluent_kafka import Producer
failed = []
producer = Producer({CLUSTER}, "acks": "all", "delivery.timeout.ms": 60000}})
for number in map(int, sys.argv[1:]):
    producer.produce(
        "kept", b"%d" % number, partition=number % 3, on_delivery=lambda error, message: error and failed.append(error)
    )
sys.exit(str(failed) if producer.flush(90) or failed else 0)
"""
RECEIVE = f"""
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({CLUSTER}, "group.id": "test"}})
consumer.assign([TopicPartition("kept", number, 0) for number in range(3)])
received = []
while message := consumer.poll(15):
    received.append(int(message.value()))
consumer.close()
print(sorted(received))
"""
CREATE_TOPIC = f"""
import time
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient({CLUSTER}}})
admin.create_topics([NewTopic("kept", 3)])["kept"].result(30)
deadline, parts = time.monotonic() + 30, {{}}
while len(parts) < 3 and time.monotonic() < deadline:  # a broker may hear of the topic later than the controller
    parts = admin.list_topics("kept", 30).topics["kept"].partitions
print(sorted(sorted(part.replicas) for part in parts.values()))
"""


@pytest.fixture
def run_python(hosts: Hosts) -> Callable[..., str]:
    """Return a function that runs Python code on load-1 with the harness's packages and returns its output."""

    def run(script: str, *arguments: object) -> str:
        process = hosts("exec", "load-1", "/opt/stream-bench/venv/bin/python", "-c", script, *map(str, arguments))
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    return run


def test_check_mode_works_on_new_hosts(play: Play, hosts: Hosts) -> None:
    """It runs to its end, and nothing is installed."""
    play("site.yml", INVENTORY, "--check", "--diff")
    for host in HOSTS:
        made = "ls -d /etc/stream-bench /opt/stream-bench /etc/kafka /var/lib/kafka /etc/systemd/system/kafka.service"
        assert hosts("exec", host, "sh", "-c", f"{made} 2>/dev/null; getent passwd kafka bench").stdout == ""


def test_site_yml_installs_all_services(play: Play, run_python: Callable[..., str]) -> None:
    """The three nodes form one cluster, which keeps three replicas of each partition."""
    play("site.yml", INVENTORY)
    assert run_python(CREATE_TOPIC) == "[[1, 2, 3], [1, 2, 3], [1, 2, 3]]"


def test_a_second_run_changes_nothing(play: Play) -> None:
    """No task of a second run of site.yml changes anything."""
    assert play("site.yml", INVENTORY).changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_check_mode_finds_nothing_to_change(play: Play) -> None:
    """It runs to its end on hosts that are set up."""
    result = play("site.yml", INVENTORY, "--check", "--diff")
    assert result.changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_check_yml_finds_no_problem(play: Play) -> None:
    """A message passes through Kafka, and the doctor reports that all three nodes run."""
    result = play("check.yml", INVENTORY)
    assert "a message of 1000 B went through 172.30.99.11:9092" in result.output
    assert all(f"ok   {host}: kafka 4.1.1 runs" in result.output for host in HOSTS)


def test_restart_yml_restarts_all_services(play: Play, restart_services: RestartServices) -> None:
    """Every service restarts, one node after the other, and all of them answer afterwards."""
    assert restart_services(INVENTORY) == {host: {"kafka"} for host in HOSTS}
    play("check.yml", INVENTORY)


def test_upgrade_yml_replaces_one_broker_after_the_other(
    play: Play, hosts: Hosts, run_python: Callable[..., str]
) -> None:
    """Jars of another version are replaced, and messages are confirmed meanwhile; none of them is lost."""
    for host in HOSTS:
        hosts("exec", host, "touch", "/opt/stream-bench/jars/kafka/kafka_2.13-4.1.0.jar")
    with ThreadPoolExecutor(1) as pool:
        upgrade = pool.submit(play, "upgrade.yml", INVENTORY)
        sent = 0
        while not upgrade.done():
            run_python(SEND, *range(sent, sent + 3))
            sent += 3
        upgrade.result()
    received = ast.literal_eval(run_python(RECEIVE))
    assert received == list(range(sent))
    checked = play("check.yml", INVENTORY).output
    assert all(f"ok   {host}: kafka 4.1.1 runs" in checked for host in HOSTS)


def test_no_confirmed_message_is_lost_with_a_broker(hosts: Hosts, run_python: Callable[..., str]) -> None:
    """After one of three nodes is killed, all confirmed messages are still there and new ones are confirmed."""
    before = ast.literal_eval(run_python(RECEIVE))
    first = len(before)
    run_python(SEND, *range(first, first + 3))
    hosts("kill", "broker-1")
    run_python(SEND, *range(first + 3, first + 6))
    assert ast.literal_eval(run_python(RECEIVE)) == [*before, *range(first, first + 6)]


def test_the_doctor_reports_only_the_failed_broker(hosts: Hosts) -> None:
    """Every problem that the doctor reports names the killed node."""
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.returncode == 3
    bad = [line for line in doctor.stdout.splitlines() if line.startswith("BAD")]
    assert bad, doctor.stdout
    assert all("172.30.99.11" in line or "broker-1" in line for line in bad), bad
