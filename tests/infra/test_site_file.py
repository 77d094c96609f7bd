"""The site file follows the inventory: written by its role with Ansible itself, from hosts that are all this machine; as root."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.config.site import FilesSite, HarmonicioSite, PulsarSite, TcpSite
from bench.config.validation import read_site

Play = Callable[..., Any]
PLAYBOOK = [{"hosts": "load_master", "gather_facts": False, "roles": ["site_file"]}]
GROUPS = {
    "kafka": ["b-1"],
    "pulsar": ["b-1", "b-2", "b-3"],
    "spark_master": ["f-1"],
    "spark_workers": ["f-1", "f-2"],
    "harmonicio_master": ["f-1"],
    "harmonicio_workers": ["f-2"],
    "nfs": ["b-1"],
    "load_master": ["l-1"],
}
CHANGED = {
    "kafka_port": 19092,
    "kafka_version": "4.0.0",
    "spark_master_port": 17077,
    "spark_executor_ports": "17140-17149",
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
    "site_password": "a password for tests",
}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the role gives its files to root")


@pytest.fixture
def written(play: Play, tmp_path: Path) -> Callable[..., Any]:
    """What writes the site file from an inventory with these variables; how the playbook ended."""

    def run(*, refused: bool = False, **variables: Any) -> Any:
        names = sorted({host for hosts in GROUPS.values() for host in hosts})
        told = {
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
        hosts = {name: {"site_address": f"10.0.0.{number}"} for number, name in enumerate(names, 1)}
        children = {group: {"hosts": {name: {} for name in members}} for group, members in GROUPS.items()}
        inventory, playbook = tmp_path / "hosts.json", tmp_path / "written.yml"
        inventory.write_text(json.dumps({"all": {"vars": told, "hosts": hosts, "children": children}}))
        playbook.write_text(json.dumps(PLAYBOOK))
        return play(str(playbook), inventory, refused=refused)

    return run


def test_every_group_has_its_part(written: Callable[..., Any], tmp_path: Path) -> None:
    """With the roles' own ports; cores are asked of workers that the play has not met, and a second time nothing changes."""
    written()
    site = read_site(tmp_path / "site.yaml")
    cores = os.cpu_count() or 1
    assert site.kafka is not None
    assert site.kafka.bootstrap == "10.0.0.1:9092"
    assert site.spark is not None
    assert (site.spark.master, site.spark.cores) == ("spark://10.0.0.4:7077", 2 * cores)
    assert site.spark.conf["spark.port.maxRetries"] == "15"
    listed = "10.0.0.1:6650,10.0.0.2:6650,10.0.0.3:6650"
    assert site.pulsar == PulsarSite(f"pulsar://{listed}", "http://10.0.0.1:8080", bookies=3, write_quorum=2)
    assert site.harmonicio == HarmonicioSite("10.0.0.4:8090", "10.0.0.4:8091", "10.0.0.6:7215", cores=cores)
    assert (site.files, site.tcp) == (FilesSite("/srv/stream"), TcpSite("10.0.0.6:7200"))
    assert site.hosts["f-2"].services == {"spark-worker": "4.2.0", "harmonicio-worker": "0.1.0"}
    assert written().changed == {"l-1": 0}


def test_variables_of_other_roles_are_followed(written: Callable[..., Any], tmp_path: Path) -> None:
    """Whatever the inventory says of a port, a version, a path or a password."""
    written(**CHANGED)
    site = read_site(tmp_path / "site.yaml")
    assert site.kafka is not None
    assert site.kafka.bootstrap == "10.0.0.1:19092"
    assert site.spark is not None
    assert (site.spark.master, site.spark.cores) == ("spark://10.0.0.4:17077", 6)
    told = {
        "driver.port": "17100",
        "driver.blockManager.port": "7120",
        "blockManager.port": "17140",
        "port.maxRetries": "9",
    }
    assert site.spark.conf == {f"spark.{name}": value for name, value in told.items()}
    assert site.pulsar is not None
    assert site.pulsar.service_url == "pulsar://10.0.0.1:16650,10.0.0.2:16650,10.0.0.3:16650"
    assert (site.pulsar.admin_url, site.pulsar.write_quorum) == ("http://10.0.0.1:18080", 3)
    assert site.harmonicio is not None
    assert (site.harmonicio.master, site.harmonicio.data) == ("10.0.0.4:18090", "10.0.0.4:18091")
    assert site.harmonicio.token_file == str(tmp_path / "operator")
    assert len((tmp_path / "operator").read_text().strip()) == 64
    assert (site.files, site.tcp) == (FilesSite("/mnt/stream"), TcpSite("10.0.0.6:17200"))
    assert site.hosts["b-1"].probes == "10.0.0.1:19100"
    assert site.hosts["b-1"].services["kafka"] == "4.0.0"


def test_a_password_of_one_service_is_refused(written: Callable[..., Any], tmp_path: Path) -> None:
    """The site file knows one."""
    done = written(refused=True, kafka_password="another password", site_password="a password for tests")
    assert "kafka_password and kafka_secured must be as site_password and site_secured are" in done.said
    assert not (tmp_path / "site.yaml").exists()
