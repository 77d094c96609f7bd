"""The library of async-profiler for this machine, from its Maven artifact."""

import os
import platform
import zipfile
from collections.abc import Callable
from pathlib import Path

from bench.errors import UsageError
from bench.services.maven_jars import download_jars, read_pins

JARS = "async-profiler"
_FOLDERS = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
"""Of the library in the jar, by the machine."""


def fetch_async_profiler(cache: Path, note: Callable[[str], None], machine: str = platform.machine()) -> Path:
    """Return the library, which is downloaded unless the cache has it.

    Args:
        cache: for downloads.
        note: called with progress.
        machine: that the library is for, as the kernel names it.

    Raises:
        UsageError: there is none for this machine, or PySpark or Java is missing.
        ServiceError: the jar cannot be had, or is not the one that was pinned.
    """
    folder = _FOLDERS.get(machine)
    if folder is None:
        raise UsageError(f"async-profiler has no library for {machine}; it has {', '.join(_FOLDERS)}")
    (pin,) = read_pins(JARS)
    library = cache.absolute() / JARS / f"{pin.version}-{folder}" / "libasyncProfiler.so"
    if not library.exists():
        jar = download_jars(JARS, cache, note) / pin.file
        library.parent.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(jar) as content:
            part.write_bytes(content.read(f"{folder}/{library.name}"))
        part.rename(library)  # the last step: what is there under its name is complete
    return library
