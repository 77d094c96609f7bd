"""The library of async-profiler comes out of its jar once, for the machine that it runs on."""

import zipfile

import pytest

from bench.errors import UsageError
from bench.services.async_profiler import JARS, fetch_async_profiler
from bench.services.maven_jars import folder_of, read_pins


@pytest.fixture
def jar(tmp_path):
    """Put a jar with a library for each machine where a download would put it."""
    (pin,) = read_pins(JARS)
    folder = folder_of(JARS, tmp_path)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / pin.file, "w") as content:
        for machine in ("linux-x64", "linux-arm64"):
            content.writestr(f"{machine}/libasyncProfiler.so", machine)
    return folder / pin.file


@pytest.mark.parametrize(("machine", "folder"), [("x86_64", "linux-x64"), ("aarch64", "linux-arm64")])
def test_the_library_is_that_of_the_machine(jar, tmp_path, machine, folder):
    """It is taken out of the jar once; nothing else stays in its folder."""
    library = fetch_async_profiler(tmp_path, print, machine)
    jar.unlink()
    assert fetch_async_profiler(tmp_path, print, machine) == library
    assert library.read_text() == folder
    assert list(library.parent.iterdir()) == [library]


def test_another_machine_has_none(tmp_path):
    """The machines that have one are named."""
    with pytest.raises(UsageError, match="no library for riscv64; it has x86_64, aarch64"):
        fetch_async_profiler(tmp_path, print, "riscv64")
