"""Tests of the role `prometheus`: what it reads, and the dashboard."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).parents[2] / "infra" / "ansible" / "roles"
DASHBOARD = ROLES / "prometheus" / "files" / "grafana-dashboard.json"
COLLECTORS = {
    "node_cpu": "cpu",
    "node_memory": "meminfo",
    "node_load1": "loadavg",
    "node_network": "netdev",
    "node_disk": "diskstats",
}
"""The collector of the node exporter that has the metrics whose names begin so."""


@pytest.fixture
def configuration(play: Callable[..., Any], tmp_path: Path) -> Path:
    """Return the configuration of two hosts, the second with a port of its own and an IPv6 address."""
    defaults = yaml.safe_load((ROLES / "prometheus" / "defaults" / "main.yml").read_text())
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "site_name": "lab"}
    hosts = {"b-1": {"site_address": "10.0.0.1"}, "m-1": {"ansible_host": "fd00::2", "node_exporter_port": 19100}}
    template = {"src": str(ROLES / "prometheus/templates/prometheus.yml.j2"), "dest": str(tmp_path / "prometheus.yml")}
    playbook = [{"hosts": "m-1", "gather_facts": False, "tasks": [{"ansible.builtin.template": template}]}]
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"vars": {**defaults, **local}, "hosts": hosts}}))
    (tmp_path / "playbook.yml").write_text(json.dumps(playbook))
    play(str(tmp_path / "playbook.yml"), tmp_path / "hosts.json")
    return tmp_path / "prometheus.yml"


def test_prometheus_reads_each_host(configuration: Path) -> None:
    """At the address and port of its node exporter, and with its name."""
    (job,) = yaml.safe_load(configuration.read_text())["scrape_configs"]
    targets = {target["labels"]["host"]: target["targets"] for target in job["static_configs"]}
    assert targets == {"b-1": ["10.0.0.1:9100"], "m-1": ["[fd00::2]:19100"]}


def test_prometheus_accepts_its_configuration(configuration: Path) -> None:
    """Its own program finds no error."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed; run: apt-get install prometheus")
    checked = subprocess.run(["promtool", "check", "config", str(configuration)], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def expressions() -> list[str]:
    return [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]


def test_the_dashboard_shows_what_is_collected() -> None:
    """Each of its metrics is of a collector that the node exporter runs, or of the site's own one."""
    settings = (ROLES / "node_exporter/templates/prometheus-node-exporter").read_text()
    own = (ROLES / "node_exporter/files/collect_service_metrics.py").read_text()
    metrics = {name for text in expressions() for name in re.findall(r"\b(?:node|stream_bench)_\w+", text)}
    assert len(metrics) >= len(COLLECTORS)
    for metric in metrics:
        collector = next((name for begin, name in COLLECTORS.items() if metric.startswith(begin)), None)
        assert metric in own if collector is None else f"--collector.{collector} " in settings, metric


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    """Each has a place and a number of its own."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
