"""Python environments that installed frameworks ask for."""

from collections.abc import Callable
from pathlib import Path

from bench.config.scenario import Scenario
from bench.errors import UsageError
from bench.plugins import registry
from bench.services import python_environments
from bench.services.python_environments import PythonEnvironment


def environments() -> dict[str, PythonEnvironment]:
    """Return the environment of every installed framework that has one of its own, by the framework's name.

    A framework whose packages are missing is passed over.
    """
    found = {}
    for name in registry.names("frameworks"):
        try:
            environment = registry.framework_plugin(name).environment
        except UsageError:
            continue
        if environment is not None:
            found[name] = environment
    return found


def installed_environments(scenario: Scenario, cache: Path) -> dict[str, str]:
    """Return what is installed of the environments of a scenario's frameworks, by framework: what a run records."""
    wanted = {cell.framework for cell in scenario.cells()}
    found = {
        name: python_environments.installed_name(environment, cache)
        for name, environment in environments().items()
        if name in wanted
    }
    return {name: installed for name, installed in found.items() if installed is not None}


def install_environment(name: str, cache: Path, note: Callable[[str], None]) -> Path:
    """Install what a framework needs; return the folder.

    Args:
        name: of the framework.
        cache: folder for downloads.
        note: called with each step.

    Raises:
        UsageError: there is no such framework, it needs nothing, or no Python of the right version is here.
        ServiceError: a package cannot be had, or is not the one that was pinned.
    """
    known = environments()
    if name in known:
        return python_environments.install(known[name], cache, note)
    if name not in registry.names("frameworks"):
        raise registry.unknown_plugin("frameworks", name)
    raise UsageError(f"{name} needs no installation; those that do: {', '.join(known) or 'none'}")
