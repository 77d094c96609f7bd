"""Our own module and filters of Ansible, without Ansible's machinery around them."""

import base64
import hashlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ANSIBLE = Path(__file__).parents[2] / "infra" / "ansible"
LOCK = Path(__file__).parents[2] / "bench" / "services" / "jars.lock"
JAR = b"not much of a jar"
PINNED = hashlib.sha256(JAR).hexdigest()


def module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ANSIBLE / path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def jars() -> ModuleType:
    if importlib.util.find_spec("ansible") is None:
        pytest.skip("Ansible is not installed; run: tox -e infra")
    return module("roles/jars/library/maven_jars.py")


def test_a_set_of_the_lock_file_is_read(jars: ModuleType) -> None:
    """Every jar of it and none of another set, where Maven has it."""
    found = jars.pinned(LOCK.read_text(), "kafka")
    assert found["kafka_2.13-4.1.1.jar"][0] == "org/apache/kafka/kafka_2.13/4.1.1/kafka_2.13-4.1.1.jar"
    assert "commons-pool2-2.12.1.jar" not in found
    assert jars.pinned(LOCK.read_text(), "there-is-none") == {}


def test_a_classifier_is_part_of_the_name(jars: ModuleType) -> None:
    """Jars with native code have one."""
    found = jars.pinned(f"set:\n  a.b:c:1.0:linux-x86_64: {PINNED}\n", "set")
    assert found == {"c-1.0-linux-x86_64.jar": ("a/b/c/1.0/c-1.0-linux-x86_64.jar", PINNED)}


def test_a_mirror_may_be_a_folder(jars: ModuleType, tmp_path: Path) -> None:
    """The jar that was pinned gets its name."""
    (tmp_path / "c-1.0.jar").write_bytes(JAR)
    assert jars.bring(tmp_path / "brought.jar", "c-1.0.jar", PINNED, tmp_path.as_uri()) is None
    assert (tmp_path / "brought.jar").read_bytes() == JAR


def test_another_jar_is_refused(jars: ModuleType, tmp_path: Path) -> None:
    """Nothing of it is left, and the line names both sums."""
    (tmp_path / "c-1.0.jar").write_bytes(b"something else")
    said = jars.bring(tmp_path / "brought.jar", "c-1.0.jar", PINNED, tmp_path.as_uri())
    assert f"expected {PINNED}" in said
    assert [path.name for path in tmp_path.iterdir()] == ["c-1.0.jar"]


def test_a_jar_that_is_not_there_is_named(jars: ModuleType, tmp_path: Path) -> None:
    """By its whole address."""
    assert f"{tmp_path.as_uri()}/c-1.0.jar" in jars.bring(
        tmp_path / "brought.jar", "c-1.0.jar", PINNED, tmp_path.as_uri()
    )


def test_a_token_is_signed() -> None:
    """The example of RFC 7515, appendix A.1, has other spaces in it; so its parts are looked at, and the sum is computed again."""
    head, claims, signature = module("filter_plugins/signed_token.py").signed_token("bench", "secret").split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "HS256"}
    assert json.loads(base64.urlsafe_b64decode(claims + "==")) == {"sub": "bench"}
    assert len(base64.urlsafe_b64decode(signature + "==")) == 32
