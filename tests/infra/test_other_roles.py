"""What three hosts with Kafka and Spark leave out: Pulsar, HarmonicIO, and a load that is sent from another host; as root.

The tests stand in the order of an operator's day, and each goes on from where the one before it has left the hosts.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
ASKED = (
    "import ssl, urllib.request as u; c = ssl.create_default_context(cafile='/etc/stream-bench/tls/ca.crt'); {shown}"
    "u.urlopen('{url}', timeout=10, context=c)"
)
OWN_CERTIFICATE = "c.load_cert_chain('/etc/stream-bench/tls/host.crt', '/etc/stream-bench/tls/host.key'); "
Done = subprocess.CompletedProcess[str]
Play = Callable[..., Any]
Hosts = Callable[..., Done]
Units = Callable[..., dict[str, dict[str, str]]]
Cells = Callable[[], list[dict[str, Any]]]
Restarted = Callable[[Path], dict[str, set[str]]]
Running = Callable[[], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("fresh")]


@pytest.fixture
def running(units: Units) -> Callable[[], dict[str, set[str]]]:
    """What gives, by host, the site's units that run, as an account that is not root."""

    def run() -> dict[str, set[str]]:
        states, users = units(HOSTS, "ActiveState"), units(HOSTS, "User")
        return {
            host: {
                unit for unit, state in of_host.items() if state == "active" and users[host][unit] not in ("", "root")
            }
            for host, of_host in states.items()
        }

    return run


@pytest.fixture
def drawn(play: Play, cells: Cells, tmp_path: Path) -> Callable[..., None]:
    """What runs a small map over the site; each of its cells has a rate, and what was sent was processed once."""

    def run(*arguments: str) -> None:
        asked = {
            "load_generator_scenario": str(SCENARIO),
            "load_generator_results": str(tmp_path),
            "load_generator_set": [
                "systems=[plain/pulsar,harmonicio/stream]",
                "grid.message_size=[1 kB]",
                "search.budget=25 s",
            ],
        }
        play("run.yml", INVENTORY, "-e", json.dumps(asked), *arguments)
        found = cells()
        assert [cell["system"] for cell in found] == ["python/pulsar", "harmonicio/stream"]
        assert [cell for cell in found if cell["status"] in ("failed", "unsupported")] == []
        assert all(cell["processed"] and not cell["lost"] and not cell["duplicated"] for cell in found), found

    return run


def test_one_command_provisions_them(play: Play, running: Running) -> None:
    """Pulsar's three services, HarmonicIO's two and the load's worker run, none of them as root."""
    play("site.yml", INVENTORY)
    assert running() == UNITS


def test_a_second_time_changes_nothing(play: Play) -> None:
    """Every role finds its work done."""
    done = play("site.yml", INVENTORY)
    assert done.changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_it_is_used(play: Play) -> None:
    """A message goes through Pulsar, a PE on HarmonicIO does a message's work, and the doctor finds nothing wrong."""
    done = play("check.yml", INVENTORY)
    assert "a message of 1000 B went through 172.30.99.11:6650" in done.said
    assert "a message went through an engine of 172.30.99.12:8090" in done.said
    assert "ok   broker-1: pulsar-broker 4.2.4 runs" in done.said
    assert "ok   framework-1: harmonicio-worker 0.1.0 runs" in done.said
    assert "ok   load-2: load-worker 0.1.0 runs" in done.said


def test_the_load_comes_from_another_host(hosts: Hosts, drawn: Callable[..., None]) -> None:
    """A run over the site's Pulsar and its HarmonicIO is sent by the worker on load-2, which then waits for the next one."""
    drawn()
    journal = hosts("exec", "load-2", "journalctl", "--unit", "load-worker", "--output", "cat").stdout
    assert journal.count("waiting for a run's load at 172.30.99.13:5557") >= 2


def test_one_variable_secures_it(play: Play, hosts: Hosts, tmp_path: Path, drawn: Callable[..., None]) -> None:
    """With tokens and TLS everything works as before; who shows no token, or HarmonicIO no certificate, is not let in."""
    secured = json.dumps(SECURED | {"certificates_authority": str(tmp_path)})
    play("site.yml", INVENTORY, "-e", secured)
    play("check.yml", INVENTORY, "-e", secured)
    drawn("-e", secured)
    pulsar, harmonicio = "https://172.30.99.11:8080/admin/v2/clusters", "https://172.30.99.12:8090/v1/status"
    for url, shown in ((pulsar, ""), (harmonicio, OWN_CERTIFICATE)):
        answer = hosts("exec", "load-1", "python3", "-c", ASKED.format(shown=shown, url=url))
        assert re.search(r"HTTP Error 40[13]", answer.stderr), answer.stderr
    answer = hosts("exec", "load-1", "python3", "-c", ASKED.format(shown="", url=harmonicio))
    assert re.search(r"CERTIFICATE_REQUIRED|ConnectionReset|RemoteDisconnected", answer.stderr), answer.stderr
    play("site.yml", INVENTORY)


def test_services_start_anew(play: Play, restarted: Restarted) -> None:
    """What the harness may ask for between cells: each of them does, and after it they answer again."""
    assert restarted(INVENTORY) == UNITS
    play("check.yml", INVENTORY)


def test_logs_come_back(play: Play, tmp_path: Path) -> None:
    """The journal of every service, by host."""
    play("collect.yml", INVENTORY, "-e", f"service_logs={tmp_path}", "-e", f"load_generator_results={tmp_path}")
    expected = {f"{host}/{unit}.log" for host, units in UNITS.items() for unit in units}
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.log")} == expected


def test_nothing_is_left_where_it_was(play: Play, hosts: Hosts) -> None:
    """Teardown removes units, data, accounts, software, secrets and the firewall."""
    play("teardown.yml", INVENTORY)
    folders = "/var/lib/pulsar /etc/pulsar /var/lib/harmonicio /etc/harmonicio /var/lib/stream-bench /var/lib/stream-bench-worker"
    ours = "/etc/stream-bench /opt/stream-bench /usr/local/lib/stream-bench /usr/local/bin/bench /tmp/stream-bench-run.tar.gz"
    rest = "getent passwd pulsar harmonicio bench load-worker; /usr/sbin/nft list tables | grep stream_bench"
    for host in HOSTS:
        units = " -e ".join({"stream-bench", *UNITS.get(host, ())})
        asked = f"ls /etc/systemd/system | grep -c -e {units}; ls -d {folders} {ours} 2>/dev/null; {rest}"
        assert hosts("exec", host, "sh", "-c", asked).stdout.strip() == "0"


def test_what_was_not_made_here_stays(play: Play, hosts: Hosts) -> None:
    """A second teardown finds nothing to do, and a folder of somebody else's under the name of ours is not touched."""
    hosts("exec", "broker-1", "sh", "-c", "mkdir /var/lib/pulsar && touch /var/lib/pulsar/theirs")
    again = play("teardown.yml", INVENTORY)
    assert set(again.changed.values()) == {0}
    assert hosts("exec", "broker-1", "ls", "/var/lib/pulsar").stdout.split() == ["theirs"]
    hosts("exec", "broker-1", "rm", "-r", "/var/lib/pulsar")


def test_it_stands_again(play: Play, running: Running) -> None:
    """What was torn down is provisioned by the same one command."""
    play("site.yml", INVENTORY)
    assert running() == UNITS
