"""Tests of the configuration of Flink's cluster, written by Ansible without hosts."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.cli.inputs import cache_folder
from bench.services.python_environments import missing_reason
from frameworks.flink.conf import FlinkSettings, cluster_conf
from frameworks.flink.installation import ENVIRONMENT, flink_home

Options = Mapping[str, Mapping[str, str]]
ROLE = Path(__file__).parents[2] / "infra" / "ansible" / "roles" / "flink"
GROUPS = {"flink_jobmanager": ["head"], "flink_taskmanagers": ["large", "small"]}
FACTS = {
    "head": {"processor_vcpus": 2, "memtotal_mb": 4_000},
    "large": {"processor_vcpus": 8, "memtotal_mb": 32_000},
    "small": {"processor_vcpus": 4, "memtotal_mb": 8_000},
}
OF_THE_HOST = ("taskmanager.memory.network.", "taskmanager.numberOfTaskSlots", ".memory.process.size")
"""Options whose values follow the hosts."""
READ_OPTIONS = """
bin=$(dirname "$0"); . "$bin/config.sh"; parseTmArgsAndExportLogs; echo "$JVM_ARGS $FLINK_ENV_JAVA_OPTS"
"""
"""bash: what Flink's script of that name does before it starts a TaskManager, and the options of its JVM."""


@pytest.fixture
def write_options(play: Callable[..., Any], tmp_path: Path) -> Callable[..., Options]:
    """Return a function that writes Flink's options of each host, and returns them by host."""

    def run(shipped: str = "", **variables: Any) -> Options:
        defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        hosts = {name: {"site_address": f"{name}.lab", "test_facts": facts} for name, facts in FACTS.items()}
        children = {group: {"hosts": {member: {} for member in members}} for group, members in GROUPS.items()}
        written = {
            "content": "{{ flink_options | combine(flink_conf) | to_nice_yaml }}",
            "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}.yaml",
        }
        play_of_all = {
            "hosts": "all",
            "gather_facts": False,
            "vars_files": [str(ROLE / "vars" / "main.yml")],
            "tasks": [
                {
                    "ansible.builtin.set_fact": {
                        "processor_vcpus": "{{ test_facts.processor_vcpus }}",
                        "memtotal_mb": "{{ test_facts.memtotal_mb }}",
                        "cacheable": True,
                    }
                },
                {"ansible.builtin.command": {"argv": ["base64", shipped or os.devnull]}, "register": "test_shipped"},
                {"ansible.builtin.copy": written, "vars": {"flink_shipped": {"content": "{{ test_shipped.stdout }}"}}},
            ],
        }
        inventory, playbook = tmp_path / "hosts.json", tmp_path / "playbook.yml"
        of_all = {**defaults, **local, **variables}
        inventory.write_text(json.dumps({"all": {"vars": of_all, "hosts": hosts, "children": children}}))
        playbook.write_text(json.dumps([play_of_all]))
        play(str(playbook), inventory)
        return {name: yaml.safe_load((tmp_path / f"{name}.yaml").read_text()) for name in FACTS}

    return run


def test_each_taskmanager_has_what_the_smallest_offers(write_options: Callable[..., Options]) -> None:
    """As many slots as it has cores, and half of its memory; each listens at its own address."""
    options = write_options()
    slots, memory = "taskmanager.numberOfTaskSlots", "taskmanager.memory.process.size"
    assert [(int(one[slots]), one[memory]) for one in options.values()] == [(4, "4000m")] * 3
    assert [options[name]["taskmanager.bind-host"] for name in FACTS] == [f"{name}.lab" for name in FACTS]
    assert {one["jobmanager.rpc.address"] for one in options.values()} == {"head.lab"}


def test_memory_is_divided_as_in_the_harness_s_own_cluster(write_options: Callable[..., Options]) -> None:
    """Each option of that cluster whose value does not follow the host is here, too."""
    own, of_site = cluster_conf(FlinkSettings(), 1), write_options()["small"]
    alike = {key: value for key, value in own.items() if not any(part in key for part in OF_THE_HOST)}
    assert alike == {key: of_site.get(key) for key in alike}
    assert len(alike) >= 3


def test_variables_of_the_inventory_take_precedence(write_options: Callable[..., Options]) -> None:
    """Sizes, ports, and any other option of Flink."""
    changes = {"taskmanager.memory.managed.size": "256m", "state.backend.type": "hashmap"}
    options = write_options(flink_slots=3, flink_memory="3g", flink_rest_port=18083, flink_conf=changes)["small"]
    expected = {
        "taskmanager.numberOfTaskSlots": 3,
        "taskmanager.memory.process.size": "3g",
        "rest.port": 18083,
        "rest.bind-port": 18083,
        **changes,
    }
    assert {key: options[key] for key in expected} == expected


def test_flink_accepts_the_options(write_options: Callable[..., Options], tmp_path: Path) -> None:
    """Its own program divides the memory, and has the options that Flink ships for every JVM."""
    reason = missing_reason(ENVIRONMENT, cache_folder())
    if reason is not None:
        pytest.skip(reason)
    home = flink_home(cache_folder())
    write_options(str(home / "conf" / "config.yaml"))
    (tmp_path / "small.yaml").rename(tmp_path / "config.yaml")
    variables = {**os.environ, "FLINK_CONF_DIR": str(tmp_path), "FLINK_LOG_DIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", READ_OPTIONS, str(home / "bin" / "taskmanager.sh")],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "-Xmx" in done.stdout
    assert "--add-opens=java.base/java.util=ALL-UNNAMED" in done.stdout
