"""Checks of a scenario against the installed plugins."""

import inspect

from msgspec.structs import replace

from bench.config.load_profile import period_of, profile_over_time
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.config.validation import convert_settings, error_at
from bench.config.yaml_document import Document
from bench.elasticity.live_samples import FLOW
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.client_lint import ConfigWarning, in_code, warn_of_partitions
from bench.plugins.placement import place
from bench.units import seconds_text


def check_scenario(document: Document, scenario: Scenario) -> None:
    """Raise UsageError, with the line of the file, when a scenario names a plugin or a setting that does not exist."""
    for index, system in enumerate(scenario.systems):
        framework, _, source = system.partition("/")
        for kind, name in (("frameworks", framework), ("sources", source)):
            known = registry.names(kind)
            if name not in known:
                allowed = f"one of the installed {registry.KINDS[kind]}s: {', '.join(known)}"
                raise error_at(
                    document, f"systems[{index}]", system, allowed=allowed, names=_likely_systems(framework, source)
                )
    named = {"search": ("search.strategy", scenario.search.strategy)}
    if scenario.load.by is not None:
        named["load_generators"] = ("load.by", scenario.load.by)
    for kind, (path, name) in named.items():
        known = registry.names(kind)
        if name not in known:
            raise error_at(document, path, name, allowed=", ".join(known) or "none", names=known)
    _check_period(document, scenario)
    _check_policies(document, scenario)
    _check_settings(document, scenario)


def _check_settings(document: Document, scenario: Scenario) -> None:
    """Raise UsageError for settings of no plugin, of another type, or that contradict each other."""
    policies = registry.names("policies") if scenario.elasticity is not None else ()
    for plugin, settings in scenario.settings.items():
        kind_of_settings = registry.settings_type(plugin)
        if plugin in policies:
            kind_of_settings = registry.policy_plugin(plugin).settings
        if kind_of_settings is None:
            known = sorted({*registry.names("frameworks"), *registry.names("sources"), *policies})
            raise error_at(document, f"settings.{plugin}", plugin, allowed=", ".join(known), names=known)
        convert_settings(kind_of_settings, settings, f"settings.{plugin}", document)
    for policy in scenario.elasticity.policies if scenario.elasticity is not None else ():
        registry.make_policy(policy, scenario.settings, FLOW)  # settings that contradict each other, before any run


def _check_period(document: Document, scenario: Scenario) -> None:
    """Raise UsageError where the profile of the load is wrong, or longer than all trials of a cell."""
    period, budget = period_of(scenario.load), float(scenario.search.budget)
    if period > budget:
        allowed = f"a period of at most search.budget ({seconds_text(budget)}): a trial has whole periods"
        raise error_at(document, f"load.{scenario.load.arrivals}", seconds_text(period), allowed=allowed)


def _check_policies(document: Document, scenario: Scenario) -> None:
    """Raise UsageError where a scaling policy is not installed, or the load that it follows is wrong."""
    if scenario.elasticity is None:
        return
    known = registry.names("policies")
    for index, name in enumerate(scenario.elasticity.policies):
        if name not in known:
            path = f"elasticity.policies[{index}]"
            raise error_at(document, path, name, allowed=", ".join(known) or "none", names=known)
    profile_over_time(scenario.elasticity.load)


def config_warnings(scenario: Scenario, site: Site, cores: int) -> list[ConfigWarning]:
    """Return the warnings about a scenario's settings and about its senders' code, each once.

    Args:
        scenario: the scenario.
        site: where it will run.
        cores: cores of this machine that a framework here has.
    """
    found: dict[ConfigWarning, None] = {}
    entropy = float(scenario.load.entropy)
    for cell in scenario.cells():
        plugin = registry.source_plugin(cell.source)
        settings = registry.settings_of_source(cell.source, scenario.settings)
        if plugin.parts is not None:
            available = _readers(cell, scenario, place(cell.framework, cell.source, site, cores).cores)
            path = f"settings.{cell.source}.partitions"
            found |= dict.fromkeys(warn_of_partitions(plugin.parts(settings, available), cell.system, available, path))
        if plugin.warnings is not None:
            found |= dict.fromkeys(plugin.warnings(settings, cell.largest_bytes, entropy))
        for module in plugin.client_code:
            found |= dict.fromkeys(in_code(inspect.getsource(module), module.__name__))
    return list(found)


def _readers(cell: Cell, scenario: Scenario, cores: int) -> int:
    """Return how many tasks of a cell's framework, which has so many cores, read partitions at once."""
    plugin = registry.framework_plugin(cell.framework)
    if scenario.elasticity is not None and not plugin.not_elastic:
        cores = max(cores, scenario.elasticity.most)
    if plugin.readers is None:
        return cores
    return plugin.readers(registry.settings_of_framework(cell.framework, scenario.settings), cores)


def scenario_on_site(scenario: Scenario, site: Site) -> Scenario:
    """Return the scenario as it runs on a site: with the workers of the site's load hosts.

    A cell whose source they do not reach is unsupported; `placement.unreachable_reason` says why.

    Raises:
        UsageError: the scenario asks for a load generator that has no workers.
    """
    if site.load is None:
        return scenario
    for cell in scenario.cells():
        plugin = registry.source_plugin(cell.source)
        if not plugin.capabilities.in_process and registry.load_generator_for(plugin, scenario).in_process:
            raise UsageError(
                "site.load names workers, but the scenario's load generator is one thread of this"
                " machine; leave load.by out"
            )
    return replace(scenario, load=replace(scenario.load, workers=site.load.workers))


def _likely_systems(framework: str, source: str) -> list[str]:
    """Return the systems that may be meant: with the framework as written, or with the source as written."""
    frameworks, sources = registry.names("frameworks"), registry.names("sources")
    with_source = [f"{known}/{source}" for known in frameworks] if source in sources else []
    with_framework = [f"{framework}/{known}" for known in sources] if framework in frameworks else []
    return with_source + with_framework
