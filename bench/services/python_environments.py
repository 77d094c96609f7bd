"""Python environments of plugins whose packages cannot be installed beside ours, or should not be with every set-up.

An environment is a folder in the cache, made by `bench install` with Python's own venv and pip from a lock file with
hashes. Its programs find the packages of the harness that starts them, and nothing else of the harness's environment.
"""

import contextlib
import functools
import hashlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from bench.errors import NotReadyError, ServiceError, UsageError
from bench.system.child import Child
from bench.system.file_lock import hold_lock
from bench.system.supervisor import Supervisor, run_tool

_TIMEOUT_S = 3600.0
"""For one step, and for another process that installs the same: 845 MB take half an hour at 4 Mbit/s."""
_NOTE_INTERVAL_S = 15.0
"""After which a step that has said nothing is told to go on."""
_POLL_INTERVAL_S = 0.2
_LINES = 10
"""Of pip's output, at the end of an error."""
_STEPS = ("Downloading", "Using cached", "Building", "Installing")
"""Beginnings of the lines of pip that are told."""
_MISMATCH = "DO NOT MATCH THE HASHES"
"""What pip says of a package that is not the pinned one."""
_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input", "--retries", "2", "--progress-bar", "off")
_PROBE = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
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
    if _installed_folder(environment, cache) is not None:
        return None
    name, size = environment.name, f"{environment.megabytes} MB"
    if _find_python(environment.versions) is None:
        versions = " or ".join(environment.versions)
        return f"{name} ({size}) needs Python {versions} with its venv module, and found none; put one on the PATH"
    return f"{name} is not installed ({size}); run: bench install {name}"


def installed_name(environment: PythonEnvironment, cache: Path) -> str | None:
    """Return the name of what is installed: the digest of its lock file, and its Python; None where nothing is."""
    folder = _installed_folder(environment, cache)
    return None if folder is None else folder.name


def interpreter(environment: PythonEnvironment, cache: Path) -> Path:
    """Return the Python of an environment. Raises UsageError where it is not installed."""
    return _python_in(_require_folder(environment, cache))


def variables(environment: PythonEnvironment, cache: Path) -> Mapping[str, str]:
    """Return the variables with which a program of an environment finds the packages of this harness and its plugins.

    Raises UsageError where the environment is not installed.
    """
    folder = _require_folder(environment, cache)
    return {"PYTHONPATH": str(_link_packages(_own_packages(), folder)), "PYTHONNOUSERSITE": "1"}


def install(environment: PythonEnvironment, cache: Path, note: Callable[[str], None]) -> Path:
    """Make an environment unless it is there, one process at a time; return its folder.

    Args:
        environment: the environment.
        cache: folder for downloads.
        note: called with each step.

    Raises:
        UsageError: no Python of the right version is here.
        ServiceError: a package cannot be had, or is not the one that was pinned, or it takes too long.
    """
    installed = _installed_folder(environment, cache)
    if installed is not None:
        return installed
    found = _find_python(environment.versions)
    if found is None:
        raise UsageError(missing_reason(environment, cache) or "")
    version, python = found
    folder = _folder(environment, cache, version)
    folder.parent.mkdir(parents=True, exist_ok=True)
    waiting = f"{environment.name}: another process installs it"
    with hold_lock(folder.with_name(f"{folder.name}.lock"), _TIMEOUT_S, lambda: note(waiting)):
        if _installed_folder(environment, cache) is None:
            note(f"{environment.name}: making an environment of Python {version}")
            _make(environment, python, folder, note)
    return folder


def _make(environment: PythonEnvironment, python: str, folder: Path, note: Callable[[str], None]) -> None:
    """Make an environment in a folder; what was begun there before is deleted."""
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(_python_in(folder)), "-I", "-m", "pip", "install", *_PIP_OPTIONS]
    steps = (
        [python, "-I", "-m", "venv", str(folder)],
        [*pip, "--require-hashes", "--no-deps", "-r", str(environment.lock.absolute())],
    )
    with Supervisor(folder / "running", folder / "logs") as supervisor:
        for step in steps:
            child = supervisor.start(step, name="install", role="framework", env={"PIP_CONSTRAINT": ""})
            _watch(child, environment, note)
    (folder / _COMPLETE).touch()


def _watch(child: Child, environment: PythonEnvironment, note: Callable[[str], None]) -> None:
    """Tell what a step does until it has ended well."""
    began = noted = time.monotonic()
    lines_read, alive = 0, True
    while alive:
        alive = child.alive()  # first: what it wrote last is still read
        lines = child.log.read_text(errors="replace").splitlines()
        news = [line.strip()[:100] for line in lines[lines_read:] if line.strip().startswith(_STEPS)]
        lines_read, now = len(lines), time.monotonic()
        if not news and now >= noted + _NOTE_INTERVAL_S:
            news = [f"goes on after {now - began:.0f} s"]
        for line in news:
            note(f"{environment.name}: {line}")
            noted = now
        if alive and now >= began + _TIMEOUT_S:
            raise NotReadyError(f"{environment.name} could not be installed within {_TIMEOUT_S:g} s", child.log)
        time.sleep(_POLL_INTERVAL_S if alive else 0)
    if child.exit_code != 0:
        raise _error(child, environment)


def _error(child: Child, environment: PythonEnvironment) -> ServiceError:
    text = child.log.read_text(errors="replace")
    why = f"a package is not the one of {environment.lock.name}" if _MISMATCH in text else "is this machine online?"
    return ServiceError(f"{environment.name} could not be installed; {why}", child.log, text.splitlines()[-_LINES:])


def _own_packages() -> dict[str, Path]:
    """Return the folder of each top-level package of the harness and of its plugins, wherever they are installed."""
    entries = [entry for distribution in distributions() for entry in distribution.entry_points]
    plugins = {entry.module.partition(".")[0] for entry in entries if entry.group.startswith("bench.")}
    specs = {name: importlib.util.find_spec(name) for name in sorted(plugins | {"bench"})}
    return {
        name: Path(spec.submodule_search_locations[0])
        for name, spec in specs.items()
        if spec is not None and spec.submodule_search_locations
    }


def _link_packages(packages: Mapping[str, Path], environment: Path) -> Path:
    """Return a folder with links to exactly these packages; each checkout of the harness has its own."""
    digest = hashlib.sha256("\n".join(f"{name}={path}" for name, path in packages.items()).encode()).hexdigest()
    folder = environment / f"harness-{digest[:12]}"
    folder.mkdir(exist_ok=True)
    for name, path in packages.items():
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(path, target_is_directory=True)
    return folder


def _require_folder(environment: PythonEnvironment, cache: Path) -> Path:
    folder = _installed_folder(environment, cache)
    if folder is None:
        raise UsageError(missing_reason(environment, cache) or "")
    return folder


def _installed_folder(environment: PythonEnvironment, cache: Path) -> Path | None:
    """Return the folder of an environment that is complete, and whose Python is still there; None without one."""
    folders = (_folder(environment, cache, version) for version in environment.versions)
    return next((one for one in folders if (one / _COMPLETE).exists() and _python_in(one).exists()), None)


def _folder(environment: PythonEnvironment, cache: Path, version: str) -> Path:
    """Return the folder of an environment; another lock file, another folder."""
    digest = hashlib.sha256(environment.lock.read_bytes()).hexdigest()
    return cache.absolute() / "environments" / f"{environment.name}-{digest[:12]}-python{version}"


def _python_in(folder: Path) -> Path:
    return folder / "bin" / "python"


@functools.cache
def _find_python(versions: tuple[str, ...]) -> tuple[str, str] | None:
    """Return (version, path) of a Python that can make environments: our own, if its version is one of these."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [(ours, sys.executable)] if ours in versions else []
    on_path = [(version, shutil.which(f"python{version}")) for version in versions]
    candidates += [(version, path) for version, path in on_path if path is not None]
    return next((one for one in candidates if _makes_environments(*one)), None)


def _makes_environments(version: str, python: str) -> bool:
    """Return whether a Python is of that version and has what venv needs: on Debian that is a package of its own."""
    try:
        return run_tool([python, "-I", "-c", _PROBE]).strip() == version
    except ServiceError:
        return False
