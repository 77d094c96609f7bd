"""Tests of a site with Pulsar, HarmonicIO and a separate load worker on four new hosts.

They need root and tests/hosts.sh. The tests build on each other: each one continues where the previous one has ended.
"""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
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
HTTPS_REQUEST = (
    "import ssl, urllib.request as u; c = ssl.create_default_context(cafile='/etc/stream-bench/tls/ca.crt'); "
    "{certificate}u.urlopen('{url}', timeout=10, context=c)"
)
HOST_CERTIFICATE = "c.load_cert_chain('/etc/stream-bench/tls/host.crt', '/etc/stream-bench/tls/host.key'); "
Process = subprocess.CompletedProcess[str]
Play = Callable[..., Any]
Hosts = Callable[..., Process]
NewestCells = Callable[[], list[dict[str, Any]]]
SearchSecrets = Callable[[Mapping[str, str]], AbstractContextManager[set[str]]]
RestartServices = Callable[[Path], dict[str, set[str]]]
RunningUnits = Callable[[], dict[str, set[str]]]

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(1800), pytest.mark.usefixtures("new_hosts")]


@pytest.fixture
def run_scenario(play: Play, newest_cells: NewestCells, tmp_path: Path) -> Callable[..., None]:
    """Return a function that measures a small map and asserts that each cell has a result without losses."""

    def run(*arguments: str) -> None:
        variables = {
            "load_generator_scenario": str(SCENARIO),
            "load_generator_results": str(tmp_path),
            "load_generator_set": [
                "systems=[python/pulsar,harmonicio/stream]",
                "grid.message_size=[1 kB]",
                "search.budget=25 s",
            ],
        }
        play("run.yml", INVENTORY, "-e", json.dumps(variables), *arguments)
        cells = newest_cells()
        assert [cell["system"] for cell in cells] == ["python/pulsar", "harmonicio/stream"]
        assert [cell for cell in cells if cell["status"] in ("failed", "unsupported")] == []
        assert all(cell["processed"] and not cell["lost"] and not cell["duplicated"] for cell in cells), cells

    return run


def test_site_yml_installs_all_services(play: Play, running_units: RunningUnits) -> None:
    """Pulsar's three services, HarmonicIO's two services and the load worker run, none of them as root."""
    play("site.yml", INVENTORY)
    assert running_units() == UNITS


def test_a_second_run_changes_nothing(play: Play) -> None:
    """No task of a second run of site.yml changes anything."""
    result = play("site.yml", INVENTORY)
    assert result.changed == dict.fromkeys([*HOSTS, "localhost"], 0)


def test_check_yml_finds_no_problem(play: Play) -> None:
    """A message passes through Pulsar, a PE of HarmonicIO processes one, and the doctor reports no problem."""
    result = play("check.yml", INVENTORY)
    assert "a message of 1000 B went through 172.30.99.11:6650" in result.output
    assert "a message went through an engine of 172.30.99.12:8090" in result.output
    assert "ok   broker-1: pulsar-broker 4.2.4 runs" in result.output
    assert "ok   framework-1: harmonicio-worker 0.1.0 runs" in result.output
    assert "ok   load-2: load-worker 0.1.0 runs" in result.output


def test_the_load_worker_sends_the_messages(hosts: Hosts, run_scenario: Callable[..., None]) -> None:
    """The worker on load-2 sends the messages of a run and then waits for the next run."""
    run_scenario()
    journal = hosts("exec", "load-2", "journalctl", "--unit", "load-worker", "--output", "cat").stdout
    assert journal.count("waiting for a run's load at 172.30.99.13:5557") >= 2


def test_one_variable_secures_the_site(
    play: Play, hosts: Hosts, tmp_path: Path, run_scenario: Callable[..., None], search_secrets: SearchSecrets
) -> None:
    """With TLS and tokens the site works as before; a client without a token or certificate is rejected.

    While checks and a run use them, the secrets are in no argument, environment, log and packet.
    """
    folders = {"certificates_authority": str(tmp_path), "site_secrets": str(tmp_path / "secrets")}
    secured = json.dumps({"site_secured": True, **folders})
    play("site.yml", INVENTORY, "-e", secured)
    secrets = {path.name: path.read_text().strip() for path in (tmp_path / "secrets").iterdir()}
    for name in ("pulsar.token", "harmonicio.operator", "harmonicio.connector"):
        secrets[name] = hosts("exec", "load-1", "cat", f"/etc/stream-bench/{name}").stdout.strip()
    with search_secrets(secrets) as found:
        play("check.yml", INVENTORY, "-e", secured)
        run_scenario("-e", secured)
    assert found == set()
    journal = hosts("exec", "load-2", "journalctl", "--unit", "load-worker", "--output", "cat").stdout
    assert "waiting for a run's load at 127.0.0.1:5556" in journal
    pulsar, harmonicio = "https://172.30.99.11:8080/admin/v2/clusters", "https://172.30.99.12:8090/v1/status"
    for url, certificate in ((pulsar, ""), (harmonicio, HOST_CERTIFICATE)):
        response = hosts("exec", "load-1", "python3", "-c", HTTPS_REQUEST.format(certificate=certificate, url=url))
        assert re.search(r"HTTP Error 40[13]", response.stderr), response.stderr
    response = hosts("exec", "load-1", "python3", "-c", HTTPS_REQUEST.format(certificate="", url=harmonicio))
    assert re.search(r"CERTIFICATE_REQUIRED|ConnectionReset|RemoteDisconnected", response.stderr), response.stderr
    play("site.yml", INVENTORY)


def test_restart_yml_restarts_all_services(play: Play, restart_services: RestartServices) -> None:
    """Every service restarts, and all of them answer afterwards."""
    assert restart_services(INVENTORY) == UNITS
    play("check.yml", INVENTORY)


def test_collect_yml_fetches_the_logs_of_all_services(play: Play, tmp_path: Path) -> None:
    """The controller has the journal of every service in a folder for each host."""
    play("collect.yml", INVENTORY, "-e", f"service_logs={tmp_path}", "-e", f"load_generator_results={tmp_path}")
    expected = {f"{host}/{unit}.log" for host, units in UNITS.items() for unit in units}
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*.log")} == expected


def test_teardown_yml_removes_everything_it_installed(play: Play, hosts: Hosts) -> None:
    """Units, data, accounts, software, secrets and the firewall are gone from all hosts."""
    play("teardown.yml", INVENTORY)
    folders = (
        "/var/lib/pulsar /etc/pulsar /var/lib/harmonicio /etc/harmonicio"
        " /var/lib/stream-bench /var/lib/stream-bench-worker"
    )
    software = "/etc/stream-bench /opt/stream-bench /usr/local/lib/stream-bench /usr/local/bin/bench"
    checks = "getent passwd pulsar harmonicio bench load-worker; /usr/sbin/nft list tables | grep stream_bench"
    for host in HOSTS:
        units = " -e ".join({"stream-bench", *UNITS.get(host, ())})
        script = f"ls /etc/systemd/system | grep -c -e {units}; ls -d {folders} {software} 2>/dev/null; {checks}"
        assert hosts("exec", host, "sh", "-c", script).stdout.strip() == "0"


def test_teardown_yml_keeps_what_it_did_not_create(play: Play, hosts: Hosts) -> None:
    """A second teardown changes nothing, and keeps a data folder that no role has created."""
    hosts("exec", "broker-1", "sh", "-c", "mkdir /var/lib/pulsar && touch /var/lib/pulsar/other")
    again = play("teardown.yml", INVENTORY)
    assert set(again.changed.values()) == {0}
    assert hosts("exec", "broker-1", "ls", "/var/lib/pulsar").stdout.split() == ["other"]
    hosts("exec", "broker-1", "rm", "-r", "/var/lib/pulsar")


def test_services_of_others_are_refused_and_kept(play: Play, hosts: Hosts) -> None:
    """A unit, an account and a configuration of somebody else stop site.yml first; a teardown leaves them alone."""
    theirs = "/etc/systemd/system/pulsar-broker.service /etc/pulsar/broker.conf"
    make = f"useradd --system --home /srv/theirs pulsar; mkdir /etc/pulsar; echo theirs | tee {theirs}"
    hosts("exec", "broker-1", "sh", "-c", make)
    before = hosts("exec", "broker-1", "sha256sum", *theirs.split()).stdout
    refused = play("site.yml", INVENTORY, expect_failure=True)
    for what in ("the unit /etc/systemd/system/pulsar-broker.service", "the folder /etc/pulsar with files in it"):
        assert what in refused.output
    assert "the account pulsar with the home /srv/theirs" in refused.output
    assert set(play("teardown.yml", INVENTORY).changed.values()) == {0}
    assert hosts("exec", "broker-1", "sha256sum", *theirs.split()).stdout == before
    hosts("exec", "broker-1", "sh", "-c", f"userdel pulsar; rm -r {theirs} /etc/pulsar")


def test_site_yml_installs_the_site_again_after_a_teardown(play: Play, running_units: RunningUnits) -> None:
    """After a teardown, site.yml starts all services again."""
    play("site.yml", INVENTORY)
    assert running_units() == UNITS
