"""Python environments that installed plugins ask for."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from bench.errors import UsageError
from bench.plugins import registry
from bench.services import python_environments
from bench.services.python_environments import PythonEnvironment


def environments() -> dict[str, PythonEnvironment]:
    """Return the environment of every installed framework that has one of its own, by the framework's name."""
    found = {}
    for name in registry.names("frameworks"):
        try:
            environment = registry.framework_plugin(name).environment
        except UsageError:
            continue
        if environment is not None:
            found[name] = environment
    return found


def install_environment(name: str, cache: Path, note: Callable[[str], None]) -> Path:
    """Install what a framework needs; return its folder.

    Raises:
        UsageError: there is no such framework, it needs nothing, or no Python of the right version is here.
        ServiceError: a package cannot be had, or is not the one that was pinned.
    """
    known = environments()
    if name not in known:
        if name not in registry.names("frameworks"):
            raise registry.unknown_plugin("frameworks", name)
        raise UsageError(f"{name} needs no installation; those that do: {', '.join(known) or 'none'}")
    packages = {package: _folder(package) for package in sorted({*registry.top_packages(), "bench"})}
    return python_environments.install(known[name], packages, cache, note)


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None, f"{package} has a plugin that is installed"
    assert found.origin is not None, f"{package} has an __init__.py"
    return Path(found.origin).parent
