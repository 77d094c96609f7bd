"""What every role and playbook has in common; read from their files, nothing is run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
ROLES = sorted(path for path in (ANSIBLE / "roles").iterdir() if path.is_dir())
PLAYBOOKS = sorted(path for path in ANSIBLE.glob("*.yml"))
named = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text()) if path.exists() else {}


@named
def test_the_face_of_a_role_is_complete(role: Path) -> None:
    """Every default has its argument, every argument that is not required its default."""
    defaults = set(read(role / "defaults" / "main.yml") or {})
    options = read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    required = {name for name, option in options.items() if option.get("required")}
    assert defaults | required == set(options)


@named
def test_variables_carry_the_name_of_their_role(role: Path) -> None:
    """So that no two roles mean different things by one name."""
    names = [*(read(role / "defaults" / "main.yml") or {}), *(read(role / "vars" / "main.yml") or {})]
    assert [name for name in names if not name.startswith(f"{role.name}_")] == []


@named
def test_a_role_says_what_it_does(role: Path) -> None:
    """Its README begins with its name and has a text."""
    title, *text = (role / "README.md").read_text().splitlines()
    assert title == f"# {role.name}"
    assert len(" ".join(text)) > 80


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_playbook_lists_roles(playbook: Path) -> None:
    """It holds no tasks and no handlers of its own."""
    for play in read(playbook):
        assert not {"tasks", "pre_tasks", "post_tasks", "handlers"} & set(play), playbook
        assert "roles" in play or "ansible.builtin.import_playbook" in play or play.get("gather_facts"), play["name"]


def test_versions_are_those_of_the_harness() -> None:
    """Kafka's is that of the lock file, Spark's that of the constraints; the site file says the same."""
    lock = (ANSIBLE.parents[1] / "bench" / "services" / "jars.lock").read_text()
    constraints = (ANSIBLE.parents[1] / "constraints.txt").read_text()
    kafka, spark = read(ANSIBLE / "roles/kafka/defaults/main.yml"), read(ANSIBLE / "roles/spark/defaults/main.yml")
    written = read(ANSIBLE / "roles/site_file/defaults/main.yml")["site_file_versions"]
    assert f"org.apache.kafka:kafka_2.13:{kafka['kafka_version']}:" in lock
    assert re.search(rf"^pyspark=={re.escape(spark['spark_version'])}$", constraints, re.M)
    assert (written["kafka"], written["spark"]) == (kafka["kafka_version"], spark["spark_version"])


def test_the_site_file_says_what_the_roles_do_by_themselves() -> None:
    """Where an inventory names no port, version or path, it says what the defaults of the roles are."""

    def default(role: str, name: str) -> Any:
        return read(ANSIBLE / "roles" / role / "defaults" / "main.yml")[f"{role}_{name}"]

    written = read(ANSIBLE / "roles/site_file/defaults/main.yml")
    assert written["site_file_ports"] == {
        "kafka": default("kafka", "port"),
        "spark": default("spark", "master_port"),
        "pulsar": default("pulsar", "port"),
        "pulsar_web": default("pulsar", "web_port"),
        "harmonicio": default("harmonicio", "master_port"),
        "harmonicio_data": default("harmonicio", "data_port"),
        "node_exporter": default("node_exporter", "port"),
        "load": default("load_generator", "worker_port"),
    }
    versions = {role: default(role, "version") for role in ("kafka", "spark", "pulsar", "harmonicio")}
    assert written["site_file_versions"] == versions | {"load": default("load_generator", "version")}
    assert written["site_file_executor_ports"] == default("spark", "executor_ports")
    for name in ("driver", "block", "source"):
        assert f"'{default('load_generator', f'{name}_ports')}'" in written[f"site_file_{name}_ports"]
    assert f"'{default('nfs', 'folder')}'" in written["site_file_folder"]
    assert written["site_file_user"] == default("kafka", "user") == default("pulsar", "user")
