"""Tests of a secured site with three nodes of Pulsar, from nothing to a map, a lost node, a restart and a teardown.

They need root and tests/hosts.sh. The tests build on each other: each one continues where the previous one has ended.
"""

import ast
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "site-smoke.yaml"
INVENTORY = ROOT / "infra" / "ansible" / "tests" / "inventories" / "three-pulsar-nodes.yml"
HOSTS = {"node-1": "172.30.99.11", "node-2": "172.30.99.12", "load-1": "172.30.99.13"}
UNITS = {"pulsar-store", "pulsar-bookie", "pulsar-broker"}
CLIENT = """
import sys, time
from pathlib import Path
import pulsar
from bench.plugins.site_file import read_site_file
from producers.pulsar.admin import Admin
from producers.pulsar.connection import make_client
from producers.pulsar.site import PULSAR_SITE
site = PULSAR_SITE.read(read_site_file(Path("/etc/stream-bench/site.yaml")))
client = make_client(site.service_url, {"ca_file": site.ca_file or "", "token_file": site.token_file or ""})
parts = [f"persistent://{site.namespace}/kept-partition-{part}" for part in range(3)]
deadline = time.monotonic() + 150

def again(action, *arguments, **options):
    while True:
        try:
            return action(*arguments, **options)
        except pulsar.PulsarException:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
"""
"""Python, for load-1: `client` is one of the site's Pulsar; `again` calls until a node has taken over from a lost one,
which ZooKeeper misses after half a minute."""
CREATE_TOPIC = (
    CLIENT
    + """
Admin(site).make_topic("kept", 3)
for part in parts:  # messages without a subscription would be deleted
    client.subscribe(part, "all").close()
print(site.service_url.partition("://")[2], site.bookies, site.write_quorum)
client.close()
"""
)
SEND = (
    CLIENT
    + """
producers = [again(client.create_producer, part, send_timeout_millis=60000) for part in parts]
for number in map(int, sys.argv[1:]):
    again(producers[number % 3].send, b"%d" % number)
client.close()
"""
)
RECEIVE = (
    CLIENT
    + """
received = set()  # one that was confirmed after a new try may be there twice
for part in parts:
    reader = again(client.create_reader, part, pulsar.MessageId.earliest)
    while again(reader.has_message_available):
        received.add(int(reader.read_next(60000).data()))
client.close()
print(sorted(received))
"""
)
Play = Callable[..., Any]
Hosts = Callable[..., subprocess.CompletedProcess[str]]
NewestCells = Callable[[], list[dict[str, Any]]]
RunningUnits = Callable[[], dict[str, set[str]]]
RunPython = Callable[..., str]
PlayWhileSending = Callable[[str, int], int]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("new_hosts")]


def test_site_yml_installs_three_nodes(play_site: Play, running_units: RunningUnits, run_python: RunPython) -> None:
    """Every service runs, none as root, and the site file names all brokers and the copies of a message."""
    play_site("site.yml")
    assert running_units() == dict.fromkeys(HOSTS, UNITS)
    brokers = ",".join(f"{address}:6650" for address in HOSTS.values())
    assert run_python(CREATE_TOPIC) == f"{brokers} 3 2"


def test_a_second_run_changes_nothing(play_site: Play) -> None:
    """No task of a second run of site.yml changes anything."""
    assert play_site("site.yml").changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_a_map_is_measured(play_site: Play, newest_cells: NewestCells, tmp_path: Path) -> None:
    """A message goes through, a cell is measured, and nothing is lost."""
    assert "a message of 1000 B went through 172.30.99.11:665" in play_site("check.yml").output
    variables = {
        "load_generator_scenario": str(SCENARIO),
        "load_generator_results": str(tmp_path),
        "load_generator_set": ["systems=[python/pulsar]", "grid.message_size=[1 kB]", "search.budget=30 s"],
    }
    play_site("run.yml", "-e", json.dumps(variables))
    (cell,) = newest_cells()
    assert cell["status"] not in ("failed", "unsupported"), cell
    assert cell["processed"], cell
    assert (cell["lost"], cell["duplicated"]) == (0, 0), cell


def test_no_confirmed_message_is_lost_with_a_node(hosts: Hosts, run_python: RunPython) -> None:
    """After one of three nodes is killed, all confirmed messages are still there and new ones are confirmed.

    Every problem that the doctor reports names the killed node.
    """
    run_python(SEND, *range(9))
    for unit in UNITS:
        assert hosts("exec", "node-2", "systemctl", "kill", "--signal=KILL", unit).returncode == 0
    run_python(SEND, *range(9, 18))
    assert ast.literal_eval(run_python(RECEIVE)) == list(range(18))
    doctor = hosts("exec", "load-1", "bench", "doctor", "--site", "/etc/stream-bench/site.yaml")
    assert doctor.returncode == 3
    bad = [line for line in doctor.stdout.splitlines() if line.startswith("BAD")]
    assert bad, doctor.stdout
    assert all("172.30.99.12" in line or "node-2: pulsar" in line for line in bad), bad


def test_restart_yml_restarts_one_node_after_the_other(
    play_while_sending: PlayWhileSending, running_units: RunningUnits, run_python: RunPython
) -> None:
    """The killed node is back, messages are confirmed meanwhile, and none of them is lost."""
    sent = play_while_sending("restart.yml", 18)
    assert running_units() == dict.fromkeys(HOSTS, UNITS)
    assert ast.literal_eval(run_python(RECEIVE)) == list(range(sent))


def test_teardown_yml_removes_everything_it_installed(play_site: Play, hosts: Hosts) -> None:
    """Units, folders and accounts of the site are gone from all hosts."""
    play_site("teardown.yml")
    made = "/etc/stream-bench /opt/stream-bench /etc/pulsar /var/lib/pulsar"
    for host in HOSTS:
        assert hosts("exec", host, "sh", "-c", f"ls -d {made} 2>/dev/null; getent passwd pulsar bench").stdout == ""
