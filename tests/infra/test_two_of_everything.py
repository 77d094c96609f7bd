"""Tests of a secured site on three new hosts that share its services, from nothing to a map, an upgrade and a teardown.

Three brokers of Kafka, one Pulsar, two workers of Spark and of HarmonicIO, and two load hosts with two processes each;
one host has somebody else's Kafka. They need root and tests/hosts.sh. The tests build on each other: each one continues
where the previous one has ended. Those of check mode and of a second worker may be left out.
"""

import ast
import json
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "site-smoke.yaml"
INVENTORY = ROOT / "infra" / "ansible" / "tests" / "inventories" / "two-of-everything.yml"
HOSTS = {"node-1": "172.30.99.11", "node-2": "172.30.99.12", "load-1": "172.30.99.13"}
UNITS = {
    "node-1": {"kafka", "spark-master", "spark-worker", "harmonicio-master", "harmonicio-worker"},
    "node-2": {"kafka", "spark-worker", "harmonicio-worker", "load-tunnel", "load-worker"},
    "load-1": {"kafka", "pulsar-store", "pulsar-bookie", "pulsar-broker", "load-tunnel", "load-worker"},
}
SYSTEMS = ["spark/kafka", "harmonicio/stream", "python/pulsar"]
THEIRS = """
useradd --system --home /srv/theirs theirs && mkdir -p /srv/theirs/data /etc/theirs
echo broker.id=7 >/etc/theirs/server.properties && head -c 100000 /dev/urandom >/srv/theirs/data/segment.log
printf '[Service]\\nUser=theirs\\nExecStart=/usr/bin/python3 -m http.server 19092 -d /srv/theirs\\n' \
  >/etc/systemd/system/their-kafka.service
systemctl daemon-reload && systemctl start their-kafka
"""
"""sh: somebody else's Kafka, with a unit, an account, a configuration, data and a port of its own."""
CHECKSUMS = "find /etc /srv /opt /usr/local -xdev -type f -exec sha256sum {} +"
CHANGED_BY_PACKAGES = ("/etc/alternatives/", "/etc/ca-certificates", "/etc/group", "/etc/gshadow", "/etc/ld.so.cache",
                       "/etc/passwd", "/etc/shadow", "/etc/ssl/certs/", "/etc/subgid", "/etc/subuid")  # fmt: skip
WORKER_CPUS = "0.6"
"""CPUs of a host with a Spark worker: two of them leave this machine enough for the broker and the load."""
CPU_BOUND = (
    "systems=[spark/kafka]", "grid.message_size=[1 kB]", "grid.cpu_cost=[20 ms]", "search.budget=70 s",
    "search.precision=10 %", "timing.window=6 s", "timing.warm_up=30 s",
)  # fmt: skip
NEWEST_RUN = "cat $(ls -td /var/lib/stream-bench/results/*/ | head -n 1)run.json"
CLIENT = """
import ast, sys, time
from pathlib import Path
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from bench.plugins.site_file import read_site_file
from producers.kafka.security import client_settings, for_librdkafka
from producers.kafka.site import KAFKA_SITE
site = KAFKA_SITE.read(read_site_file(Path("/etc/stream-bench/site.yaml")))
cluster = {"bootstrap.servers": site.bootstrap, **for_librdkafka(client_settings(site.security))}
"""
"""Python, for load-1: `cluster` is how the site's Kafka is reached."""
SEND = (
    CLIENT
    + """
failed = []
producer = Producer({**cluster, "acks": "all", "delivery.timeout.ms": 60000})
for number in map(int, sys.argv[1:]):
    producer.produce(
        "kept", b"%d" % number, partition=number % 3, on_delivery=lambda error, message: error and failed.append(error)
    )
sys.exit(str(failed) if producer.flush(90) or failed else 0)
"""
)
RECEIVE = (
    CLIENT
    + """
consumer = Consumer({**cluster, "group.id": "test"})
consumer.assign([TopicPartition("kept", number, 0) for number in range(3)])
received = []
while message := consumer.poll(15):
    received.append(int(message.value()))
consumer.close()
print(sorted(received))
"""
)
CREATE_TOPIC = (
    CLIENT
    + """
admin = AdminClient(cluster)
admin.create_topics([NewTopic("kept", 3)])["kept"].result(30)
deadline, parts = time.monotonic() + 30, {}
while len(parts) < 3 and time.monotonic() < deadline:  # a broker may hear of the topic later than the controller
    parts = admin.list_topics("kept", 30).topics["kept"].partitions
print(sorted(sorted(part.replicas) for part in parts.values()))
"""
)
WITHOUT_GC = """
import sys, time
from bench.telemetry.node_exporter import read_metrics
from bench.telemetry.site_hosts import host_counters
deadline, missing = time.monotonic() + 60, set(sys.argv[1:])
while missing and time.monotonic() < deadline:  # the collector runs every 15 s
    jvms = {host: host_counters(read_metrics(host + ":9100")).gc for host in missing}
    missing = {host for host, names in jvms.items() if not any(name.startswith("kafka ") for name in names)}
    time.sleep(1)
print(sorted(missing))
"""
"""Python, for load-1: prints the addresses of hosts whose exporter does not serve the pauses of Kafka's JVM."""
OPEN_CLIENT = (
    "from confluent_kafka.admin import AdminClient;"
    " AdminClient({'bootstrap.servers': '172.30.99.11:9092'}).list_topics(timeout=5)"
)
Play = Callable[..., Any]
Hosts = Callable[..., subprocess.CompletedProcess[str]]
Checksums = dict[str, dict[str, str]]
NewestCells = Callable[[], list[dict[str, Any]]]
RunningUnits = Callable[[], dict[str, set[str]]]
RunPython = Callable[..., str]
PlayWhileSending = Callable[[str, int], int]
SearchSecrets = Callable[[Mapping[str, str]], AbstractContextManager[set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("new_hosts")]


@pytest.fixture(scope="module")
def before(new_hosts: None, hosts: Hosts) -> Checksums:
    """The files of each host before anything was installed, with somebody else's Kafka on node-1."""
    assert hosts("exec", "node-1", "sh", "-ec", THEIRS).returncode == 0
    return checksums(hosts)


def checksums(hosts: Hosts) -> Checksums:
    """Checksums of files by host and path."""
    found = {host: hosts("exec", host, "sh", "-c", CHECKSUMS).stdout for host in HOSTS}
    return {
        host: {path: checksum for checksum, path in (line.split("  ", 1) for line in text.splitlines())}
        for host, text in found.items()
    }


def test_check_mode_works_on_new_hosts(play_site: Play, before: Checksums, hosts: Hosts) -> None:
    """It runs to its end, and nothing is installed or changed."""
    play_site("site.yml", "--check", "--diff")
    for host, files in checksums(hosts).items():
        assert not [path for path in files if "stream-bench" in path or "kafka/server" in path]
        assert changed(before[host], files) == []


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Files that are gone or differ, but for those that packages of the distribution write."""
    paths = [path for path, checksum in before.items() if after.get(path) != checksum]
    return [path for path in paths if not path.startswith(CHANGED_BY_PACKAGES)]


@pytest.mark.usefixtures("before")
def test_site_yml_installs_all_services(play_site: Play, running_units: RunningUnits, run_python: RunPython) -> None:
    """Every service runs, none as root, Kafka keeps three replicas of each partition, and its JVMs are measured."""
    play_site("site.yml")
    assert running_units() == UNITS
    assert run_python(CREATE_TOPIC) == "[[1, 2, 3], [1, 2, 3], [1, 2, 3]]"
    assert run_python(WITHOUT_GC, *HOSTS.values()) == "[]"


def test_check_mode_finds_nothing_to_change(play_site: Play) -> None:
    """It runs to its end on hosts that are set up."""
    assert play_site("site.yml", "--check", "--diff").changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_a_secured_map_is_measured_and_no_secret_is_seen(
    play_site: Play, hosts: Hosts, newest_cells: NewestCells, secured: Path, search_secrets: SearchSecrets
) -> None:
    """Both workers take part, four processes on two hosts send one schedule, and nothing is lost.

    The secrets are in no argument, log and packet, and in no environment of another account: Spark's executors and
    HarmonicIO's PEs get theirs in the environment of their own one.
    """
    variables = {
        "load_generator_scenario": str(SCENARIO),
        "load_generator_results": str(secured),
        "load_generator_set": [f"systems=[{','.join(SYSTEMS)}]", "grid.message_size=[1 kB]", "search.budget=30 s"],
    }
    secrets = {path.name: path.read_text().strip() for path in (secured / "secrets").iterdir()}
    for name in ("pulsar.token", "harmonicio.operator", "harmonicio.connector"):
        secrets[name] = hosts("exec", "load-1", "cat", f"/etc/stream-bench/{name}").stdout.strip()
    assert all(secrets.values())
    with search_secrets(secrets) as found:
        checked = play_site("check.yml").output
        play_site("run.yml", "-e", json.dumps(variables))
    assert found <= {"spark in the environment of spark", "harmonicio.connector in the environment of harmonicio"}
    assert "8 Python tasks ran on node-1, node-2" in checked
    assert "a message of 1000 B went through 172.30.99.11:9092,172.30.99.12:9092,172.30.99.13:9092" in checked
    assert "a message of 1000 B went through 172.30.99.13:665" in checked
    assert "a message went through an engine of 172.30.99.11:8090" in checked
    assert all(f"ok   {host}: kafka 4.1.1 runs" in checked for host in HOSTS)
    cells = newest_cells()
    assert [cell["system"] for cell in cells] == SYSTEMS
    assert [cell for cell in cells if cell["status"] in ("failed", "unsupported")] == []
    assert all(cell["processed"] and not cell["lost"] and not cell["duplicated"] for cell in cells), cells
    run = json.loads(hosts("exec", "load-1", "sh", "-c", NEWEST_RUN).stdout)
    assert run["scenario"]["load"]["workers"] == 4


def test_a_client_without_a_password_is_refused(hosts: Hosts) -> None:
    """Kafka's port answers nobody who has no certificate of the site."""
    assert hosts("exec", "load-1", "/opt/stream-bench/venv/bin/python", "-c", OPEN_CLIENT).returncode != 0


def test_a_second_worker_doubles_the_rate(hosts: Hosts, rate_of_workers: Callable[[int], dict[str, Any]]) -> None:
    """Two Spark workers on hosts with a CPU limit sustain twice the rate of one, within a tenth and the intervals."""
    for host in ("node-1", "node-2"):
        assert hosts("limit", host, WORKER_CPUS).returncode == 0
    results = {workers: rate_of_workers(workers) for workers in (1, 2)}
    for host in ("node-1", "node-2"):
        assert hosts("limit", host, "2").returncode == 0
    print(results)  # noqa: T201  the rates, for the record of the run
    assert {cell["status"] for cell in results.values()} == {"measured"}
    assert results[2]["high_hz"] >= 0.9 * 2 * results[1]["low_hz"]


@pytest.fixture
def rate_of_workers(hosts: Hosts, newest_cells: NewestCells) -> Callable[[int], dict[str, Any]]:
    """Measure a cell with some of the workers; again where other work of this machine left no estimate."""

    def measure(workers: int) -> dict[str, Any]:
        site = f"/var/lib/stream-bench/site-{workers}.yaml"
        only = f"sed -e /^load:/d -e 's/^  cores: 2$/  cores: {workers}/' /etc/stream-bench/site.yaml > {site}"
        changes = " ".join(f"--set '{one}'" for one in CPU_BOUND)
        run = f"bench run scenarios/site-smoke.yaml --site {site} {changes}"
        cell: dict[str, Any] = {}
        for _ in range(3):
            done = hosts("exec", "load-1", "sh", "-c", f"{only} && {run}")
            assert done.returncode in (0, 4), done.stdout + done.stderr
            (cell,) = newest_cells()
            if cell["status"] == "measured":
                break
        return cell

    return measure


def test_upgrade_yml_replaces_one_broker_after_the_other(
    play_while_sending: PlayWhileSending, hosts: Hosts, run_python: RunPython
) -> None:
    """Jars of another version are replaced, and messages are confirmed meanwhile; none of them is lost."""
    for host in HOSTS:
        hosts("exec", host, "touch", "/opt/stream-bench/jars/kafka/kafka_2.13-4.1.0.jar")
    sent = play_while_sending("upgrade.yml", 0)
    assert ast.literal_eval(run_python(RECEIVE)) == list(range(sent))
    for host in HOSTS:
        assert hosts("exec", host, "ls", "/opt/stream-bench/jars/kafka/kafka_2.13-4.1.0.jar").returncode != 0


def test_no_confirmed_message_is_lost_with_a_broker(hosts: Hosts, run_python: RunPython) -> None:
    """After one of three brokers is killed, all confirmed messages are still there and new ones are confirmed.

    Every problem that the doctor reports names the killed broker.
    """
    before = ast.literal_eval(run_python(RECEIVE))
    first = len(before)
    run_python(SEND, *range(first, first + 3))
    assert hosts("exec", "node-1", "systemctl", "kill", "--signal=KILL", "kafka").returncode == 0
    run_python(SEND, *range(first + 3, first + 6))
    assert ast.literal_eval(run_python(RECEIVE)) == [*before, *range(first, first + 6)]
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.returncode == 3
    bad = [line for line in doctor.stdout.splitlines() if line.startswith("BAD")]
    assert bad, doctor.stdout
    assert all("172.30.99.11:9092" in line or "node-1: kafka" in line for line in bad), bad


def test_teardown_yml_leaves_what_others_have(play_site: Play, before: Checksums, hosts: Hosts) -> None:
    """Units, folders and accounts of the site are gone from all hosts; each file of before is unchanged."""
    play_site("teardown.yml")
    made = "/etc/stream-bench /opt/stream-bench /etc/kafka /etc/pulsar /etc/spark /etc/harmonicio /var/lib/kafka"
    accounts = "getent passwd kafka pulsar spark harmonicio bench load-worker"
    for host, files in checksums(hosts).items():
        assert hosts("exec", host, "sh", "-c", f"ls -d {made} 2>/dev/null; {accounts}").stdout == ""
        assert changed(before[host], files) == []
    assert hosts("exec", "node-1", "systemctl", "is-active", "their-kafka").stdout.strip() == "active"
