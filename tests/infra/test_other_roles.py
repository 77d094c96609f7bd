"""What three hosts with Kafka and Spark leave out: Pulsar, HarmonicIO, and a load that is sent from another host; as root.

The tests stand in the order of an operator's day, and each goes on from where the one before it has left the hosts.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "site-smoke.yaml"
INVENTORY = ROOT / "infra" / "ansible" / "tests" / "inventories" / "others.yml"
HOSTS = {"broker-1": "172.30.99.11", "framework-1": "172.30.99.12", "load-1": "172.30.99.13", "load-2": "172.30.99.14"}
UNITS = {
    "broker-1": {"pulsar-bookie", "pulsar-broker", "pulsar-store"},
    "framework-1": {"harmonicio-master", "harmonicio-worker"},
    "load-2": {"load-worker"},
}
SECURED = {"site_secured": True, "site_password": "a password for tests"}
Done = subprocess.CompletedProcess[str]
Play = Callable[..., Done]
Hosts = Callable[..., Done]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800)]


def changed(said: str) -> dict[str, int]:
    """By host: how many tasks have changed something."""
    return {host: int(count) for host, count in re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", said, re.M)}


def running(hosts: Hosts) -> dict[str, set[str]]:
    """By host: the site's units that run, as an account that is not root."""
    one = 'echo "$(systemctl is-active $unit):$(systemctl show --property User --value $unit):$unit"'
    asked = f"cd /etc/stream-bench/services && for note in *.json; do unit=${{note%.json}}; {one}; done"
    found = {host: [line.split(":") for line in hosts("exec", host, "sh", "-c", asked).stdout.split()] for host in UNITS}
    return {
        host: {unit for state, user, unit in lines if state == "active" and user not in ("", "root")}
        for host, lines in found.items()
    }


@pytest.fixture(scope="module", autouse=True)
def four_hosts(hosts: Hosts) -> Iterator[None]:
    """Hosts with nothing on them; nothing of them is left afterwards."""
    up = hosts("up", *(f"{name}={address}" for name, address in HOSTS.items()))
    assert up.returncode == 0, up.stderr
    yield
    hosts("down")


def test_one_command_provisions_them(play: Play, hosts: Hosts) -> None:
    """Pulsar's three services, HarmonicIO's two and the load's worker run, none of them as root."""
    done = play("site.yml", INVENTORY)
    assert done.returncode == 0, done.stdout[-3000:]
    assert running(hosts) == UNITS


def test_a_second_time_changes_nothing(play: Play) -> None:
    """Every role finds its work done."""
    done = play("site.yml", INVENTORY)
    assert done.returncode == 0, done.stdout[-3000:]
    assert changed(done.stdout) == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_it_is_used(play: Play) -> None:
    """A message goes through Pulsar, a PE on HarmonicIO does a message's work, and the doctor finds nothing wrong."""
    done = play("check.yml", INVENTORY)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "a message of 1000 B went through 172.30.99.11:6650" in done.stdout
    assert "a message went through an engine of 172.30.99.12:8090" in done.stdout
    assert "ok   broker-1: pulsar-broker 4.2.4 runs" in done.stdout
    assert "ok   framework-1: harmonicio-worker 0.1.0 runs" in done.stdout
    assert "ok   load-2: load-worker 0.1.0 runs" in done.stdout


def test_the_load_comes_from_another_host(play: Play, hosts: Hosts, tmp_path: Path) -> None:
    """A run over Pulsar is sent by the worker on load-2, which then waits for the next one."""
    run = {
        "load_generator_scenario": str(SCENARIO),
        "load_generator_results": str(tmp_path),
        "load_generator_set": ["systems=plain/pulsar", "grid.message_size=[1 kB]"],
    }
    done = play("run.yml", INVENTORY, "-e", json.dumps(run))
    assert done.returncode == 0, done.stdout[-3000:]
    shown = hosts("exec", "load-1", "sh", "-c", "cat $(ls -td /var/lib/stream-bench/results/*/ | head -n 1)cells.json")
    (cell,) = json.loads(shown.stdout)["cells"]
    assert cell["status"] not in ("failed", "unsupported"), cell
    assert cell["processed"], cell
    assert not cell["lost"], cell
    assert not cell["duplicated"], cell
    journal = hosts("exec", "load-2", "journalctl", "--unit", "load-worker", "--output", "cat").stdout
    assert journal.count("waiting for a run's load at 172.30.99.13:5557") >= 2


def test_one_variable_secures_it(play: Play, hosts: Hosts, tmp_path: Path) -> None:
    """With tokens and TLS everything works as before, and who shows no token is not let in."""
    secured = json.dumps(SECURED | {"certificates_authority": str(tmp_path)})
    done = play("site.yml", INVENTORY, "-e", secured)
    assert done.returncode == 0, done.stdout[-3000:]
    checked = play("check.yml", INVENTORY, "-e", secured)
    assert checked.returncode == 0, checked.stdout[-3000:]
    asked = "import ssl, urllib.request as u; u.urlopen({!r}, timeout=10, context=ssl.create_default_context(cafile={!r}))"
    authority = "/etc/stream-bench/tls/ca.crt"
    pulsar = asked.format("https://172.30.99.11:8080/admin/v2/clusters", authority)
    harmonic = "import urllib.request as u; u.urlopen('http://172.30.99.12:8090/v1/status', timeout=10)"
    for question in (pulsar, harmonic):
        answer = hosts("exec", "load-1", "python3", "-c", question)
        assert re.search(r"HTTP Error 40[13]", answer.stderr), answer.stderr
    done = play("site.yml", INVENTORY)
    assert done.returncode == 0, done.stdout[-3000:]


def test_services_start_anew(play: Play) -> None:
    """What the harness may ask for between cells: after it they answer again."""
    done = play("restart.yml", INVENTORY)
    assert done.returncode == 0, done.stdout[-3000:]
    checked = play("check.yml", INVENTORY)
    assert checked.returncode == 0, checked.stdout[-3000:]


def test_logs_come_back(play: Play, tmp_path: Path) -> None:
    """The journal of every service, by host."""
    done = play("collect.yml", INVENTORY, "-e", f"service_logs={tmp_path}", "-e", f"load_generator_results={tmp_path}")
    assert done.returncode == 0, done.stdout[-3000:]
    expected = {f"{host}/{unit}.log" for host, units in UNITS.items() for unit in units}
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.log")} == expected


def test_nothing_is_left_where_it_was(play: Play, hosts: Hosts) -> None:
    """Teardown removes units, data and settings, and finds nothing to do a second time."""
    done = play("teardown.yml", INVENTORY)
    assert done.returncode == 0, done.stdout[-3000:]
    folders = "/var/lib/pulsar /etc/pulsar /var/lib/harmonicio /etc/harmonicio /var/lib/stream-bench /var/lib/stream-bench-worker"
    for host, units in UNITS.items():
        asked = f"ls /etc/systemd/system | grep -c -e {' -e '.join(units)}; ls -d {folders} 2>/dev/null"
        assert hosts("exec", host, "sh", "-c", asked).stdout.strip() == "0"
    again = play("teardown.yml", INVENTORY)
    assert again.returncode == 0, again.stdout[-3000:]
    assert set(changed(again.stdout).values()) == {0}
