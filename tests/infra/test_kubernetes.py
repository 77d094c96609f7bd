"""The manifests of infra/kubernetes: valid against the schemas of Kubernetes, and they fit the harness."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.plugins.site_file import read_site_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra" / "kubernetes"
VERSION = "1.37"
STRIMZI = "kafka.strimzi.io/v1"


def objects() -> list[Any]:
    """All objects of all files, each with its file's name as its id."""
    return [
        pytest.param(one, id=f"{path.stem}-{one['kind']}-{one['metadata']['name']}")
        for path in sorted(FOLDER.glob("*.yaml"))
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]


def pods() -> list[Any]:
    """The specifications of all pods."""
    return [
        pytest.param(param.values[0]["spec"]["template"]["spec"], id=param.id)
        for param in objects()
        if "template" in param.values[0].get("spec", {})
    ]


@pytest.mark.parametrize("one", objects())
def test_an_object_is_valid(one: dict[str, Any]) -> None:
    """No key is unknown, and no value has the wrong type; Strimzi's own kinds have no schema here."""
    validate = pytest.importorskip("kubernetes_validate", reason="run: tox -e ansible-lint")
    assert one["kind"] == "Namespace" or one["metadata"]["namespace"] == "stream-bench"
    if one["apiVersion"] == STRIMZI:
        assert one["kind"] in ("Kafka", "KafkaNodePool")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unknown version falls back to another one with a warning
        validate.validate(one, VERSION, strict=True)


@pytest.mark.parametrize("pod", pods())
def test_a_pod_has_no_privileges(pod: dict[str, Any]) -> None:
    """It passes the level `restricted` of Kubernetes, and has the CPU that it asks for."""
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        limits, requests = container["resources"]["limits"], container["resources"]["requests"]
        assert limits.get("cpu", requests["cpu"]) == requests["cpu"]
        assert limits["memory"] == requests["memory"]


def test_the_site_file_is_one(tmp_path: Path) -> None:
    """The harness reads the site file of the ConfigMap, and its cores are those of the workers."""
    every = [param.values[0] for param in objects()]
    (text,) = [one["data"]["site.yaml"] for one in every if one["kind"] == "ConfigMap"]
    (tmp_path / "site.yaml").write_text(text)
    site = read_site_file(tmp_path / "site.yaml")
    for framework in ("spark", "harmonicio"):
        (spec,) = [one["spec"] for one in every if one["metadata"]["name"] == f"{framework}-worker"]
        (container,) = spec["template"]["spec"]["containers"]
        assert site.sections[framework].cores == spec["replicas"] * int(container["resources"]["limits"]["cpu"])


def test_the_job_runs_a_scenario_of_the_image() -> None:
    """The Containerfile copies the scenarios to where the Job looks for them."""
    (job,) = [param.values[0] for param in objects() if param.values[0]["kind"] == "Job"]
    scenario = Path(job["spec"]["template"]["spec"]["containers"][0]["args"][2])
    assert scenario.parent == Path("/opt/stream-bench/scenarios")
    assert (ROOT / "scenarios" / scenario.name).exists()
