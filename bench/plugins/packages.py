"""Distributions that plugins name, whose versions a run records."""

from bench.config.scenario import Scenario
from bench.errors import UsageError
from bench.plugins import registry


def scenario_packages(scenario: Scenario) -> list[str]:
    """Return the distributions whose versions a run of the scenario records: those that its plugins name."""
    found = set(registry.load_generator_plugin(scenario.load.by).packages)
    for cell in scenario.cells():
        found |= {*registry.source_plugin(cell.source).packages, *registry.framework_plugin(cell.framework).packages}
    return sorted(found)


def installed_packages() -> list[str]:
    """Return the distributions that any installed plugin names; one whose packages are missing is passed over."""
    found: set[str] = set()
    for kind, load in (
        ("sources", registry.source_plugin),
        ("frameworks", registry.framework_plugin),
        ("load_generators", registry.load_generator_plugin),
    ):
        for name in registry.names(kind):
            try:
                found |= set(load(name).packages)
            except UsageError:
                continue
    return sorted(found)
