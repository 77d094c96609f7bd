"""A set of jars is complete, the pinned one, and downloaded once."""

import hashlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.errors import ServiceError, UsageError
from bench.services import java as java_module
from bench.services import maven_jars as module
from bench.services.java import java
from bench.services.maven_jars import Pin, download_jars, folder_of, has_jars, read_pins, verify

TINY = "tiny:\n  org.jspecify:jspecify:1.0.0: "
TINY_SHA256 = "1fad6e6be7557781e4d33729d49ae1cdc8fdda6fe477bb0cc68ce351eafdfbab"


def lock_file(folder: Path, sha256: str = TINY_SHA256) -> Path:
    path = folder / "some.lock"
    path.write_text(TINY + sha256)
    return path


@pytest.mark.parametrize(
    ("name", "count", "leader"),
    [
        ("kafka", 46, "kafka_2.13-4.1.1.jar"),
        ("pulsar", 256, "pulsar-broker-4.2.4.jar"),
        ("spark-kafka", 4, "spark-sql-kafka-0-10_2.13-4.2.0.jar"),
    ],
    ids=["kafka", "pulsar", "spark-kafka"],
)
def test_every_jar_is_pinned(name: str, count: int, leader: str) -> None:
    """The lock file lists each set as a whole, every jar with its checksum."""
    pins = read_pins(name)
    assert len({pin.file for pin in pins}) == count
    assert leader in {pin.file for pin in pins}
    assert {len(pin.sha256) for pin in pins} == {64}


def test_wrong_jar_is_named(tmp_path: Path) -> None:
    """A jar that is not the pinned one is an error that names the file and both checksums."""
    (tmp_path / "thing-1.jar").write_bytes(b"tampered")
    found = hashlib.sha256(b"tampered").hexdigest()
    with pytest.raises(ServiceError, match=rf"thing-1\.jar is not the pinned jar.*{found}, expected abc"):
        verify(tmp_path, [Pin("org", "thing", "1", "abc")])


def test_missing_jar_is_named(tmp_path: Path) -> None:
    """A jar that did not come is an error that names it."""
    with pytest.raises(ServiceError, match=r"thing-1\.jar was not downloaded"):
        verify(tmp_path, [Pin("org", "thing", "1", "abc")])


@pytest.mark.real
def test_jars_are_downloaded_and_shown(tmp_path: Path) -> None:
    """The folder has exactly the pinned jars, nothing else is left in the cache, and the progress was told."""
    notes: list[str] = []
    folder = download_jars("tiny", tmp_path / "cache", notes.append, lock=lock_file(tmp_path))
    assert [path.name for path in folder.iterdir()] == ["jspecify-1.0.0.jar"]
    assert sorted(path.suffix for path in folder.parent.iterdir()) == ["", ".lock"]
    assert notes[-1] == "tiny jars: 1 of 1 downloaded"


@pytest.mark.real
def test_cached_jars_are_not_downloaded_again(tmp_path: Path) -> None:
    """A second call finds the folder and has nothing to tell; `cached` knows it."""
    notes: list[str] = []
    assert not has_jars("tiny", tmp_path / "cache", lock=lock_file(tmp_path))
    first = download_jars("tiny", tmp_path / "cache", lambda _: None, lock=lock_file(tmp_path))
    assert download_jars("tiny", tmp_path / "cache", notes.append, lock=lock_file(tmp_path)) == first
    assert notes == []
    assert has_jars("tiny", tmp_path / "cache", lock=lock_file(tmp_path))


@pytest.mark.real
def test_one_download_serves_all_who_ask(tmp_path: Path) -> None:
    """Of two that want the same jars at the same time one downloads; the other one says that it waits."""
    notes: list[str] = []
    lock = lock_file(tmp_path)
    with ThreadPoolExecutor(2) as both:
        folders = list(both.map(lambda _: download_jars("tiny", tmp_path / "cache", notes.append, lock=lock), range(2)))
    assert folders[0] == folders[1]
    assert notes.count("tiny jars: another process is downloading them") == 1
    assert notes.count("tiny jars: 1 of 1 downloaded") >= 1


@pytest.mark.real
def test_wrong_checksum_gives_no_folder(tmp_path: Path) -> None:
    """A download that is not what was pinned does not get into the cache."""
    with pytest.raises(ServiceError, match=r"jspecify-1\.0\.0\.jar is not the pinned jar"):
        download_jars("tiny", tmp_path / "cache", lambda _: None, lock=lock_file(tmp_path, "0" * 64))
    assert not [path for path in (tmp_path / "cache/jars").iterdir() if not path.suffix]


@pytest.mark.real
def test_unknown_version_says_what_is_missing(tmp_path: Path) -> None:
    """A jar that no registry has is named in the error."""
    lock = tmp_path / "some.lock"
    lock.write_text("tiny:\n  org.jspecify:jspecify:0.0.0-none: abc")
    with pytest.raises(ServiceError, match=r"could not be downloaded.*\n.*jspecify;0\.0\.0-none"):
        download_jars("tiny", tmp_path / "cache", lambda _: None, lock=lock)


def test_missing_pyspark_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PySpark is not installed the error has the line that installs it."""
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r'pip install "stream-bench\[spark\]"'):
        download_jars("tiny", tmp_path / "cache", lambda _: None, lock=lock_file(tmp_path))


def test_pyspark_is_found_without_importing_it() -> None:
    """Looking for Ivy does not load PySpark into the harness."""
    loaded = set(sys.modules)
    assert module._ivy().name.startswith("ivy-")
    assert not {name for name in set(sys.modules) - loaded if name.startswith("pyspark")}


@pytest.fixture
def fresh_java() -> Callable[[], str]:
    """Java as it is looked for the first time."""
    return java.__wrapped__


def fake_java(folder: Path, version: str) -> Path:
    path = folder / "bin/java"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_java: Callable[[], str]) -> None:
    """The Java that JAVA_HOME names is the one."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    path = fake_java(tmp_path, "21.0.1")
    assert fresh_java() == str(path)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_452"])
def test_old_java_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_java: Callable[[], str], version: str
) -> None:
    """A Java that is too old is an error with its version and what to do."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    fake_java(tmp_path, version)
    number = java_module._version_in(f'version "{version}"')
    with pytest.raises(UsageError, match=f"Java 17 or later is needed and .* is Java {number}; install one"):
        fresh_java()


def test_no_java_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_java: Callable[[], str]
) -> None:
    """Where there is no Java the error says what to run."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"there is none; install one .*apt-get install"):
        fresh_java()


def test_a_set_may_be_put_where_it_is_looked_for(tmp_path: Path) -> None:
    """Who fills the cache is not asked."""
    pins = read_pins("spark-kafka")
    folder = folder_of("spark-kafka", tmp_path)
    folder.mkdir(parents=True)
    for pin in pins:
        (folder / pin.file).touch()
    assert has_jars("spark-kafka", tmp_path)
