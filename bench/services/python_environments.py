"""Python environments of plugins whose packages cannot be installed beside ours, or should not be with every set-up.

An environment is a folder in the cache, made by `bench install` with `python -m venv` and pip from a lock file with
hashes. Programs in it find the harness's own packages, and nothing else of the harness's environment.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.errors import ServiceError, UsageError
from bench.system.file_lock import hold_lock

_TIMEOUT_S = 3600.0
_LINES = 10
"""Of pip's output, at the end of an error."""
_COMPLETE = "complete"
"""A file that is written last: an environment without it is not used."""


class PythonEnvironment(NamedTuple):
    """The environment of a plugin."""

    name: str
    """what `bench install` is called with: the plugin's name"""
    lock: Path
    """requirements for pip, all with hashes"""
    megabytes: int
    """of the downloads, about"""
    versions: tuple[str, ...]
    """of Python for which the packages exist, such as "3.11", the best first"""


def missing_reason(environment: PythonEnvironment, cache: Path) -> str | None:
    """Return why programs cannot be run in an environment, and what to do, in a sentence; None when they can."""
    found = _find_python(environment)
    if found is None:
        versions = " or ".join(environment.versions)
        return f"{environment.name} needs Python {versions}, and there is no python{environment.versions[0]} here"
    if not (_folder(environment, cache, found[0]) / _COMPLETE).exists():
        return f"{environment.name} is not installed ({environment.megabytes} MB); run: bench install {environment.name}"
    return None


def interpreter(environment: PythonEnvironment, cache: Path) -> Path:
    """Return the Python of an environment. Raises UsageError where it is not installed."""
    return _installed(environment, cache) / "bin" / "python"


def variables(environment: PythonEnvironment, cache: Path) -> Mapping[str, str]:
    """Return the variables with which a program of an environment finds our packages.

    Raises UsageError where the environment is not installed.
    """
    return {"PYTHONPATH": str(_installed(environment, cache) / "harness"), "PYTHONNOUSERSITE": "1"}


def install(environment: PythonEnvironment, packages: Mapping[str, Path], cache: Path, note: Callable[[str], None]) -> Path:
    """Make an environment unless it is there; return its folder.

    Args:
        environment: the environment.
        packages: by name: folders of packages of ours that its programs import.
        cache: folder for downloads.
        note: called with each step.

    Raises:
        UsageError: no Python of the right version is here.
        ServiceError: a package cannot be had, or is not the one that was pinned.
    """
    found = _find_python(environment)
    if found is None:
        raise UsageError(missing_reason(environment, cache) or "")
    version, python = found
    folder = _folder(environment, cache, version)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(
        folder.with_suffix(".lock"), _TIMEOUT_S, lambda: note(f"{environment.name}: another process installs it")
    ):
        if not (folder / _COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            note(f"{environment.name}: making an environment of Python {version}")
            _run([python, "-m", "venv", str(folder)], environment, note)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
            options = ["--require-hashes", "--no-deps", "--progress-bar", "off", "-r", str(environment.lock)]
            _run([*pip, "install", *options], environment, note)
        _link(packages, folder / "harness")
        (folder / _COMPLETE).touch()
    return folder


def _link(packages: Mapping[str, Path], folder: Path) -> None:
    """Make a folder with exactly these packages: another checkout may have made it before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, path in packages.items():
        (folder / name).symlink_to(path, target_is_directory=True)


def _run(command: list[str], environment: PythonEnvironment, note: Callable[[str], None]) -> None:
    """Run a step to its end; note what it downloads and installs."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if lines[-1].startswith(("Downloading", "Using cached", "Building", "Installing")):
                note(f"{environment.name}: {lines[-1][:100]}")
    if process.returncode != 0:
        last = "".join(f"\n    {line}" for line in lines[-_LINES:])
        raise ServiceError(f"{environment.name} could not be installed; is this machine online?{last}")


def _installed(environment: PythonEnvironment, cache: Path) -> Path:
    reason = missing_reason(environment, cache)
    if reason is not None:
        raise UsageError(reason)
    found = _find_python(environment)
    assert found is not None, "or there would be a reason"
    return _folder(environment, cache, found[0])


def _folder(environment: PythonEnvironment, cache: Path, version: str) -> Path:
    """Return the folder of an environment; another lock file, another folder."""
    digest = hashlib.sha256(environment.lock.read_bytes()).hexdigest()
    return cache.absolute() / "environments" / f"{environment.name}-{digest[:12]}-python{version}"


def _find_python(environment: PythonEnvironment) -> tuple[str, str] | None:
    """Return (version, path) of the Python for an environment: our own, if it is of a right version."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if ours in environment.versions:
        return ours, sys.executable
    for version in environment.versions:
        path = shutil.which(f"python{version}")
        if path is not None:
            return version, path
    return None
