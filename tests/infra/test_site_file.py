"""Tests of the role `site_file`, run by Ansible as root with an inventory whose hosts are all this machine."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.plugins.site_file import read_site_file
from bench.units import Size
from frameworks.flink.site import FlinkSite
from frameworks.harmonicio.site import HarmonicioSite
from producers.files.site import FilesSite
from producers.pulsar.site import PulsarSite
from producers.tcp.site import TcpSite

Play = Callable[..., Any]
PLAYBOOK = [{"hosts": "load_master", "gather_facts": False, "roles": ["site_file"]}]
GROUPS = {
    "kafka": ["b-1"],
    "pulsar": ["b-1", "b-2", "b-3"],
    "spark_master": ["f-1"],
    "spark_workers": ["f-1", "f-2"],
    "flink_jobmanager": ["f-1"],
    "flink_taskmanagers": ["f-1", "f-2"],
    "harmonicio_master": ["f-1"],
    "harmonicio_workers": ["f-2"],
    "nfs": ["b-1"],
    "load_master": ["l-1"],
}
CHANGED = {
    "kafka_port": 19092,
    "spark_memory": "3g",
    "kafka_copies": 2,
    "pulsar_message_bytes": 10_000_000,
    "site_disk": "500 MB/s",
    "spark_master_port": 17077,
    "spark_executor_ports": "17140-17149",
    "flink_rest_port": 18083,
    "flink_slots": 3,
    "flink_environment": "/srv/flink",
    "pulsar_port": 16650,
    "pulsar_web_port": 18080,
    "pulsar_copies": 3,
    "harmonicio_master_port": 18090,
    "harmonicio_data_port": 18091,
    "node_exporter_port": 19100,
    "load_generator_driver_ports": "17100-17115",
    "load_generator_source_ports": "17200-17203",
    "nfs_path": "/mnt/stream",
    "spark_cores": 3,
    "harmonicio_secret": "a secret for tests",
}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the role needs root to set the owner of its files")


@pytest.fixture
def write_site_file(play: Play, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that runs the role with the given inventory variables and returns the playbook's result."""

    def run(*, expect_failure: bool = False, subnet: str = "10.0.0.", **variables: Any) -> Any:
        names = sorted({host for hosts in GROUPS.values() for host in hosts})
        inventory_variables = {
            "site_name": "lab",
            "site_file_path": str(tmp_path / "site.yaml"),
            "site_file_group": "root",
            "site_file_venv": str(Path(sys.executable).parents[1]),
            "site_file_operator_file": str(tmp_path / "operator"),
            "site_file_connector_file": str(tmp_path / "connector"),
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            **variables,
        }
        hosts = {name: {"site_address": f"{subnet}{number}"} for number, name in enumerate(names, 1)}
        children = {group: {"hosts": {name: {} for name in members}} for group, members in GROUPS.items()}
        inventory, playbook = tmp_path / "hosts.json", tmp_path / "playbook.yml"
        inventory.write_text(json.dumps({"all": {"vars": inventory_variables, "hosts": hosts, "children": children}}))
        playbook.write_text(json.dumps(PLAYBOOK))
        return play(str(playbook), inventory, expect_failure=expect_failure)

    return run


def test_the_site_file_has_a_section_for_every_group(write_site_file: Callable[..., Any], tmp_path: Path) -> None:
    """Every section has the roles' default ports, cores are read from the workers, and a second run changes nothing."""
    write_site_file()
    site = read_site_file(tmp_path / "site.yaml")
    cores = os.cpu_count() or 1
    assert site.sections["kafka"].bootstrap == "10.0.0.1:9092"
    assert (site.sections["spark"].master, site.sections["spark"].cores) == ("spark://10.0.0.4:7077", 2 * cores)
    assert site.sections["spark"].conf["spark.port.maxRetries"] == "15"
    assert int(site.sections["spark"].conf["spark.executor.memory"].removesuffix("m")) >= 1024
    brokers = "10.0.0.1:6650,10.0.0.2:6650,10.0.0.3:6650"
    assert site.sections["pulsar"] == PulsarSite(
        f"pulsar://{brokers}", "http://10.0.0.1:8080", bookies=3, write_quorum=2, message_limit=Size(20_971_520)
    )
    assert site.sections["kafka"].replication == 1
    assert site.sections["harmonicio"] == HarmonicioSite("10.0.0.4:8090", "10.0.0.4:8091", "10.0.0.6:7215", cores=cores)
    python = "/opt/stream-bench/flink/bin/python"
    assert site.sections["flink"] == FlinkSite("10.0.0.4:8083", "10.0.0.6:7214", python=python, cores=2 * cores)
    assert (site.sections["files"], site.sections["tcp"]) == (FilesSite("/srv/stream"), TcpSite("10.0.0.6:7200"))
    services = {"spark-worker": "4.2.0", "flink-taskmanager": "2.3.0", "harmonicio-worker": "0.1.0"}
    assert site.hosts["f-2"].services == services
    assert write_site_file().changed == {"l-1": 0}


def test_ipv6_addresses_have_brackets(
    write_site_file: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At all endpoints, in URLs, and where this machine listens."""
    monkeypatch.setitem(GROUPS, "load_workers", ["l-2"])
    monkeypatch.delitem(GROUPS, "pulsar")
    write_site_file(subnet="fd00::", load_generator_processes=1)
    site = read_site_file(tmp_path / "site.yaml")
    spark, harmonicio, flink = (site.sections[name] for name in ("spark", "harmonicio", "flink"))
    assert site.sections["kafka"].bootstrap == "[fd00::1]:9092"
    assert (spark.master, spark.driver_host) == ("spark://[fd00::2]:7077", "[fd00::4]")
    assert (harmonicio.master, harmonicio.listen) == ("[fd00::2]:8090", "[fd00::4]:7215")
    assert (flink.rest, flink.listen) == ("[fd00::2]:8083", "[fd00::4]:7214")
    assert site.sections["tcp"] == TcpSite("[fd00::4]:7200", load_hosts=("[fd00::5]:7200",))
    assert site.load is not None
    assert site.load.listen == "[fd00::4]:5557"
    assert site.hosts["b-1"].probes == "[fd00::1]:9100"


def test_load_workers_get_an_address_of_their_host_for_each_process(
    write_site_file: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as the ports of the host reach, and they use the shared folder."""
    monkeypatch.setitem(GROUPS, "load_workers", ["l-1", "l-2"])
    write_site_file(load_generator_processes=3, load_generator_source_ports="7200-7201")
    site = read_site_file(tmp_path / "site.yaml")
    addresses = ("10.0.0.6:7200", "10.0.0.6:7201", "10.0.0.7:7200", "10.0.0.7:7201")
    assert site.sections["tcp"] == TcpSite("10.0.0.6:7200", load_hosts=addresses)
    assert site.sections["files"] == FilesSite("/srv/stream", load_hosts=True)
    assert site.load is not None
    assert site.load.workers == 6


def test_a_host_that_only_watches_is_left_out(
    write_site_file: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing runs there that is measured, whatever other group a cloud puts it into."""
    monkeypatch.setitem(GROUPS, "monitoring", ["m-1"])
    monkeypatch.setitem(GROUPS, "zone", ["m-1", "l-1"])
    write_site_file()
    assert set(read_site_file(tmp_path / "site.yaml").hosts) == {"b-1", "b-2", "b-3", "f-1", "f-2", "l-1"}


def test_variables_of_other_roles_take_precedence(write_site_file: Callable[..., Any], tmp_path: Path) -> None:
    """Ports, sizes, paths and passwords of the inventory replace the defaults."""
    write_site_file(**CHANGED)
    site = read_site_file(tmp_path / "site.yaml")
    assert site.sections["kafka"].bootstrap == "10.0.0.1:19092"
    assert (site.sections["spark"].master, site.sections["spark"].cores) == ("spark://10.0.0.4:17077", 6)
    conf = {
        "driver.port": "17100",
        "driver.blockManager.port": "7120",
        "blockManager.port": "17140",
        "port.maxRetries": "9",
        "executor.memory": "3072m",
    }
    assert site.sections["spark"].conf == {f"spark.{name}": value for name, value in conf.items()}
    assert site.sections["pulsar"].service_url == "pulsar://10.0.0.1:16650,10.0.0.2:16650,10.0.0.3:16650"
    assert (site.sections["pulsar"].admin_url, site.sections["pulsar"].write_quorum) == ("http://10.0.0.1:18080", 3)
    assert (site.sections["harmonicio"].master, site.sections["harmonicio"].data) == (
        "10.0.0.4:18090",
        "10.0.0.4:18091",
    )
    assert site.sections["flink"] == FlinkSite(
        "10.0.0.4:18083", "10.0.0.6:17202", python="/srv/flink/bin/python", cores=6
    )
    assert site.sections["harmonicio"].token_file == str(tmp_path / "operator")
    assert len((tmp_path / "operator").read_text().strip()) == 64
    assert (site.sections["files"], site.sections["tcp"]) == (FilesSite("/mnt/stream"), TcpSite("10.0.0.6:17200"))
    assert site.hosts["b-1"].probes == "10.0.0.1:19100"
    assert (site.sections["kafka"].replication, site.disk) == (2, 500e6)
    assert site.sections["pulsar"].message_limit == 10_000_000


def test_a_secured_service_on_an_open_site_is_rejected(write_site_file: Callable[..., Any], tmp_path: Path) -> None:
    """The site file has one setting for all services, so the role fails and writes no file."""
    result = write_site_file(expect_failure=True, kafka_secured=True)
    assert "kafka_secured must be equal to site_secured" in result.output
    assert not (tmp_path / "site.yaml").exists()


def test_every_service_of_a_secured_site_has_its_own_secret(
    write_site_file: Callable[..., Any], tmp_path: Path
) -> None:
    """The role makes secrets that only their owner can read, writes each into a file of its own, and keeps them."""
    variables: dict[str, Any] = {
        "site_secured": True,
        "site_secrets": str(tmp_path / "secrets"),
        "certificates_authority": str(tmp_path / "authority"),
        "certificates_folder": str(tmp_path / "tls"),
        "certificates_group": "root",
        "site_file_harmonicio_tls": str(tmp_path / "tls-harmonicio"),
        "site_file_kafka_password_file": str(tmp_path / "kafka"),
        "site_file_spark_password_file": str(tmp_path / "spark"),
        "site_file_token_file": str(tmp_path / "token"),
    }
    write_site_file(**variables)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == {"kafka", "spark", "pulsar", "harmonicio"}
    assert len(set(made.values())) == len(made)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").iterdir()} == {0o600}
    assert (tmp_path / "kafka").read_text() == made["kafka"]
    assert (tmp_path / "spark").read_text() == made["spark"]
    site = read_site_file(tmp_path / "site.yaml")
    assert site.sections["kafka"].security.password_file == str(tmp_path / "kafka")
    assert not [text for text in made.values() if text.strip() in (tmp_path / "site.yaml").read_text()]
    assert write_site_file(**variables).changed == {"l-1": 0}
