"""Facts about this machine."""

import pytest

from bench.system import host_info


@pytest.mark.parametrize(
    ("kind", "features", "lent"),
    [("0x0005", "011001010000", True), ("0x0005", "0110", False), ("0x0002", "011001010000", False)],
)
def test_a_balloon_that_reports_free_pages_lends_memory(tmp_path, kind, features, lent):
    """Bit 5 of the features of a balloon; of another device it means something else."""
    folder = tmp_path / "virtio0"
    folder.mkdir()
    (folder / "device").write_text(f"{kind}\n")
    (folder / "features").write_text(f"{features}\n")
    assert host_info.memory_is_lent(tmp_path) is lent


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A program that says what Java says, found by JAVA_HOME."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("""#!/bin/sh
echo "Picked up JAVA_TOOL_OPTIONS: $JAVA_TOOL_OPTIONS" >&2
echo 'openjdk version "17.0.15" 2025-04-15' >&2
""")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xint")


@pytest.mark.usefixtures("java")
def test_options_of_java_are_facts_of_their_own(monkeypatch):
    """Java says them before its version; a run with others is another one."""
    facts = host_info.describe("bench run")
    assert facts["java"] == 'openjdk version "17.0.15" 2025-04-15'
    assert facts["java_options"] == "-Xint"
    assert host_info.find_change(facts) is None
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    assert host_info.find_change(facts) == "java_options -Xint, not None"
    assert "java_options: -Xint → None" in host_info.list_differences(facts, host_info.describe("bench run"))


@pytest.mark.usefixtures("java")
def test_a_java_that_could_not_be_asked_is_no_other_java(monkeypatch):
    """A run whose start had hardly any memory can be gone on with, and the other way round."""
    known = host_info.describe("bench run")
    assert host_info.find_change(known | {"java": None}) is None
    assert "17.0.15" in str(host_info.find_change(known | {"java": 'openjdk version "21.0.1" 2023-10-17'}))
    monkeypatch.setenv("JAVA_HOME", "/missing")
    assert host_info.find_change(known) is None


def test_a_machine_without_such_devices_lends_nothing(tmp_path):
    """Such as a laptop."""
    assert not host_info.memory_is_lent(tmp_path / "missing")
