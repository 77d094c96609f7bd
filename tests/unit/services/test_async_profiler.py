"""The library of async-profiler comes out of its jar once, for the machine that it runs on."""

import zipfile

import pytest

from bench.errors import UsageError
from bench.services import async_profiler
from bench.services.async_profiler import JARS, fetch_async_profiler
from bench.services.maven_jars import read_pins


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    """Count downloads of a jar with a library for each machine."""
    asked = []

    def download(name, cache, note):
        asked.append(name)
        (pin,) = read_pins(JARS)
        with zipfile.ZipFile(tmp_path / pin.file, "w") as jar:
            for folder in ("linux-x64", "linux-arm64"):
                jar.writestr(f"{folder}/libasyncProfiler.so", folder)
        return tmp_path

    monkeypatch.setattr(async_profiler, "download_jars", download)
    return asked


@pytest.mark.parametrize(("machine", "folder"), [("x86_64", "linux-x64"), ("aarch64", "linux-arm64")])
def test_the_library_is_that_of_the_machine(downloads, tmp_path, monkeypatch, machine, folder):
    """It is fetched once; nothing else stays in its folder."""
    monkeypatch.setattr(async_profiler.platform, "machine", lambda: machine)
    libraries = {fetch_async_profiler(tmp_path / "cache", print) for _ in range(2)}
    (library,) = libraries
    assert library.read_text() == folder
    assert list(library.parent.iterdir()) == [library]
    assert downloads == [JARS]


def test_another_machine_has_none(tmp_path, monkeypatch):
    """The machines that have one are named."""
    monkeypatch.setattr(async_profiler.platform, "machine", lambda: "riscv64")
    with pytest.raises(UsageError, match="no library for riscv64; it has x86_64, aarch64"):
        fetch_async_profiler(tmp_path, print)
