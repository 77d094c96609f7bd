"""Three fresh hosts become a Kafka of three nodes, which loses one of them and no message; as root, with tests/hosts.sh.

The tests stand in the order of an operator's day, and each goes on from where the one before it has left the hosts.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

INVENTORY = Path(__file__).parents[2] / "infra" / "ansible" / "tests" / "inventories" / "three-brokers.yml"
HOSTS = {"broker-1": "172.30.99.11", "broker-2": "172.30.99.12", "load-1": "172.30.99.13"}
Play = Callable[..., Any]
Hosts = Callable[..., subprocess.CompletedProcess[str]]
Restarted = Callable[[Path], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1200), pytest.mark.usefixtures("fresh")]

ALL = '{"bootstrap.servers": "172.30.99.11:9092,172.30.99.12:9092,172.30.99.13:9092"'
SEND = f"""
import sys
from confluent_kafka import Producer
failed = []
producer = Producer({ALL}, "acks": "all", "delivery.timeout.ms": 60000}})
for number in map(int, sys.argv[1:]):
    producer.produce("kept", b"%d" % number, partition=number % 3, on_delivery=lambda error, sent: error and failed.append(error))
sys.exit(str(failed) if producer.flush(90) or failed else 0)
"""
READ = f"""
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({ALL}, "group.id": "test"}})
consumer.assign([TopicPartition("kept", number, 0) for number in range(3)])
found = []
while message := consumer.poll(15 if len(found) < 6 else 1):
    found.append(int(message.value()))
consumer.close()
print(sorted(found))
"""
MAKE = f"""
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient({ALL}}})
admin.create_topics([NewTopic("kept", 3)])["kept"].result(30)
print(sorted(sorted(part.replicas) for part in admin.list_topics("kept", 30).topics["kept"].partitions.values()))
"""


@pytest.fixture
def asks(hosts: Hosts) -> Callable[..., str]:
    """What runs a piece of Python on load-1 with the harness's packages, and gives what it printed."""

    def ask(script: str, *words: object) -> str:
        done = hosts("exec", "load-1", "/opt/stream-bench/venv/bin/python", "-c", script, *map(str, words))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return ask


def test_one_command_provisions_them(play: Play, asks: Callable[..., str]) -> None:
    """They form one cluster, which keeps three copies of what it is sent."""
    play("site.yml", INVENTORY)
    assert asks(MAKE) == "[[1, 2, 3], [1, 2, 3], [1, 2, 3]]"


def test_a_second_time_changes_nothing(play: Play) -> None:
    """Every role finds its work done."""
    assert play("site.yml", INVENTORY).changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_it_is_used(play: Play) -> None:
    """A message goes through Kafka, and the doctor finds all three."""
    done = play("check.yml", INVENTORY)
    assert "a message of 1000 B went through 172.30.99.11:9092" in done.said
    assert all(f"ok   {host}: kafka 4.1.1 runs" in done.said for host in HOSTS)


def test_services_start_anew(play: Play, restarted: Restarted) -> None:
    """What the harness may ask for between cells: each of them does, and after it they answer again."""
    assert restarted(INVENTORY) == {host: {"kafka"} for host in HOSTS}
    play("check.yml", INVENTORY)


def test_a_broker_may_go(hosts: Hosts, asks: Callable[..., str]) -> None:
    """One of three loses its power: what was confirmed is there, and the other two confirm more."""
    asks(SEND, 1, 2, 3)
    hosts("kill", "broker-1")
    asks(SEND, 4, 5, 6)
    assert asks(READ) == "[1, 2, 3, 4, 5, 6]"


def test_the_doctor_names_it(hosts: Hosts) -> None:
    """And nobody else."""
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.returncode == 3
    bad = [line for line in doctor.stdout.splitlines() if line.startswith("BAD")]
    assert bad, doctor.stdout
    assert all("172.30.99.11" in line or "broker-1" in line for line in bad), bad
