"""Tests of the project's own Ansible module and filters, called as Python functions."""

import base64
import hashlib
import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from bench.services.java import java
from bench.telemetry.jvm_gc import gc_seconds

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
LOCK = Path(__file__).parents[2] / "bench" / "services" / "jars.lock"
FLINK_LOCK = Path(__file__).parents[2] / "frameworks" / "flink" / "requirements.lock"
JAR = b"content of a jar"
SHA256 = hashlib.sha256(JAR).hexdigest()


def load_module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ANSIBLE / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def jars() -> ModuleType:
    """Return the module maven_jars."""
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")
    return load_module("roles/jars/library/maven_jars.py")


def test_a_set_of_the_lock_file_is_read(jars: ModuleType) -> None:
    """The result has the Maven path of every jar of the set, and no jar of another set."""
    pins = jars.read_pins(LOCK.read_text(), "kafka")
    assert pins["kafka_2.13-4.1.1.jar"][0] == "org/apache/kafka/kafka_2.13/4.1.1/kafka_2.13-4.1.1.jar"
    assert "commons-pool2-2.12.1.jar" not in pins
    assert jars.read_pins(LOCK.read_text(), "missing") == {}


def test_a_classifier_is_part_of_the_name(jars: ModuleType) -> None:
    """The classifier of a jar with native code is a part of its file name."""
    pins = jars.read_pins(f"set:\n  a.b:c:1.0:linux-x86_64: {SHA256}\n", "set")
    assert pins == {"c-1.0-linux-x86_64.jar": ("a/b/c/1.0/c-1.0-linux-x86_64.jar", SHA256)}


def test_a_mirror_may_be_a_folder(jars: ModuleType, tmp_path: Path) -> None:
    """A file URL works, and a jar with the pinned checksum gets its name."""
    (tmp_path / "c-1.0.jar").write_bytes(JAR)
    assert jars.download(tmp_path / "downloaded.jar", "c-1.0.jar", SHA256, tmp_path.as_uri()) is None
    assert (tmp_path / "downloaded.jar").read_bytes() == JAR


def test_a_jar_with_another_checksum_is_rejected(jars: ModuleType, tmp_path: Path) -> None:
    """The file is deleted, and the error contains the pinned checksum."""
    (tmp_path / "c-1.0.jar").write_bytes(b"something else")
    error = jars.download(tmp_path / "downloaded.jar", "c-1.0.jar", SHA256, tmp_path.as_uri())
    assert f"expected {SHA256}" in error
    assert [path.name for path in tmp_path.iterdir()] == ["c-1.0.jar"]


def test_the_error_names_the_url_of_a_missing_jar(jars: ModuleType, tmp_path: Path) -> None:
    """The error contains the whole URL."""
    assert f"{tmp_path.as_uri()}/c-1.0.jar" in jars.download(
        tmp_path / "downloaded.jar", "c-1.0.jar", SHA256, tmp_path.as_uri()
    )


def test_a_token_is_signed() -> None:
    """Header and claims are those of RFC 7515 without blanks, and the signature has 32 bytes."""
    head, claims, signature = load_module("filter_plugins/signed_token.py").signed_token("bench", "secret").split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "HS256"}
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"] == "bench"
    assert len(base64.urlsafe_b64decode(signature + "==")) == 32


def test_a_token_expires_and_is_the_same_within_a_month() -> None:
    """It is valid for a year at least; a playbook that runs a month later creates another one."""
    signed = load_module("filter_plugins/signed_token.py")
    month_s, now = signed.STEP_DAYS * signed.DAY_S, 660 * 30 * 86_400.0
    first = signed.signed_token("bench", "secret", now)
    assert first == signed.signed_token("bench", "secret", now + month_s - 1)
    assert first != signed.signed_token("bench", "secret", now + month_s)
    expires = json.loads(base64.urlsafe_b64decode(first.split(".")[1] + "=="))["exp"]
    assert expires - (now + month_s - 1) > 365 * signed.DAY_S


def test_the_version_of_a_service_is_that_of_the_file_that_it_runs(tmp_path: Path) -> None:
    """A file that was replaced after the start is not what runs; two files, or none, have no version."""
    metrics = load_module("roles/node_exporter/files/collect_service_metrics.py")
    artifact = str(tmp_path / "kafka_2.13")
    assert metrics.installed_version(artifact, None) == "unknown"
    jar = tmp_path / "kafka_2.13-4.1.1.jar"
    jar.write_bytes(JAR)
    changed = jar.stat().st_ctime
    assert metrics.installed_version(artifact, changed + 5) == "4.1.1"
    assert metrics.installed_version(artifact, changed - 5) == "4.1.1 (replaced: restart the service)"
    (tmp_path / "kafka_2.13-3.9.0.jar").write_bytes(JAR)
    assert metrics.installed_version(artifact, None) == "unknown"


def test_the_version_of_a_python_package_is_that_of_its_metadata(tmp_path: Path) -> None:
    """Other packages whose names begin alike are passed over."""
    metrics = load_module("roles/node_exporter/files/collect_service_metrics.py")
    for name in ("pyspark-4.2.0.dist-info", "pyspark-client-4.0.0.dist-info"):
        (tmp_path / name).mkdir()
    assert metrics.installed_version(str(tmp_path / "pyspark"), None) == "4.2.0"


def test_the_pauses_of_a_jvm_are_read_by_root_and_no_other_file_is(tmp_path: Path) -> None:
    """A JVM that collects garbage has paused; a process that is none has not, and links and other files are refused."""
    metrics = load_module("roles/node_exporter/files/collect_service_metrics.py")
    program = tmp_path / "Collect.java"
    program.write_text("""
        public class Collect {
            public static void main(String[] arguments) throws Exception {
                System.gc();
                System.out.println("ready");
                System.in.read();
            }
        }""")
    with subprocess.Popen([java(), program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:
        try:
            assert jvm.stdout is not None
            assert "ready\n" in iter(jvm.stdout.readline, "")  # after what the JVM says of its options
            assert metrics.gc_seconds(jvm.pid) > 0
            assert metrics.gc_seconds(jvm.pid) <= gc_seconds(jvm.pid)  # as the harness reads them a moment later
        finally:
            jvm.kill()
    assert metrics.gc_seconds(os.getpid()) is None
    endless = metrics.PROLOGUE.pack(metrics.COUNTERS_MAGIC, 1, 2, 0, 0, 0, 0, 0, metrics.PROLOGUE.size, 2**31 - 1)
    with pytest.raises(ValueError, match="no file of a JVM"):
        list(metrics.read_counters(endless + bytes(metrics.ENTRY.size)))
    (link := tmp_path / "link").symlink_to(program)
    for wrong in (link, tmp_path):
        with pytest.raises((OSError, ValueError)):
            metrics.read_file_of(os.getpid(), wrong)
    assert b"Collect" in metrics.read_file_of(os.getpid(), program)


def test_versions_come_from_the_files_that_pin_them() -> None:
    """Every program that the roles install has one."""
    pinned = load_module("filter_plugins/pinned_version.py")
    versions = {program: pinned.pinned_version(program) for program in pinned.PINS}
    assert f"org.apache.kafka:kafka_2.13:{versions['kafka']}:" in LOCK.read_text()
    assert f"org.apache.pulsar:pulsar-broker:{versions['pulsar']}:" in LOCK.read_text()
    assert f"apache-flink=={versions['flink']} " in FLINK_LOCK.read_text()
    with pytest.raises(ValueError, match="allowed: kafka, pulsar, flink, spark, stream-bench"):
        pinned.pinned_version("storm")


@pytest.mark.parametrize(
    ("text", "expected"), [("512m", 512), ("2g", 2048), ("2G", 2048), ("1048576k", 1024), ("1t", 2**20)]
)
def test_a_size_of_memory_is_read_in_mebibytes(text: str, expected: int) -> None:
    """The units are those of the JVM."""
    assert load_module("filter_plugins/megabytes.py").megabytes(text) == expected


@pytest.mark.parametrize("text", ["", "2", "1.5g", "two", "-1g"])
def test_other_sizes_of_memory_are_rejected(text: str) -> None:
    """The message has the value."""
    with pytest.raises(ValueError, match="is not a size of memory"):
        load_module("filter_plugins/megabytes.py").megabytes(text)


@pytest.mark.parametrize(
    ("host", "rest", "text"),
    [
        ("b1", [9092], "b1:9092"),
        ("10.0.0.1", ["9092"], "10.0.0.1:9092"),
        ("fd00::1", [9092], "[fd00::1]:9092"),
        ("fd00::1", ["/srv/stream"], "[fd00::1]:/srv/stream"),
        ("fd00::1", [], "[fd00::1]"),
        ("b1", [], "b1"),
    ],
)
def test_an_endpoint_has_an_ipv6_address_in_brackets(host: str, rest: list[int | str], text: str) -> None:
    """Names and IPv4 addresses have none."""
    assert load_module("filter_plugins/endpoint.py").endpoint(host, *rest) == text
