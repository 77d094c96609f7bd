"""Plugins by kind and name, found through entry points: our own are listed in our pyproject.toml like anybody's."""

import difflib
import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from msgspec import Struct

from bench.config.scenario import Scenario
from bench.config.site import Site, file_type, from_file
from bench.config.validation import convert_settings
from bench.elasticity.dataflow import Dataflow
from bench.elasticity.policy import Policy, PolicyPlugin
from bench.errors import PluginError, UsageError
from bench.plugins.plugin import ConsumerPlugin, FrameworkPlugin, LoadGeneratorPlugin, ReportPlugin, SourcePlugin
from bench.plugins.protocols import Consumer, Endpoint, Framework, Sender, Source
from bench.plugins.site_section import Section
from bench.search.problem import SearchPlugin, SearchProblem, Strategy

KINDS: Mapping[str, str] = {
    "sources": "source",
    "consumers": "consumer",
    "frameworks": "framework",
    "load_generators": "load generator",
    "search": "search strategy",
    "policies": "scaling policy",
    "reports": "report format",
}
"""By entry point group (without "bench."): the word for one plugin of it."""

_NOT_MAPPED = "failed to map"
"""What the dynamic linker says of a library for which there is no memory."""

P = TypeVar("P")
Ability = TypeVar("Ability")
SettingsByPlugin = Mapping[str, Mapping[str, object]]


def names(kind: str) -> list[str]:
    """Return the names of the installed plugins of a kind, in alphabetical order."""
    return sorted(_entry_points(kind))


def source_plugin(name: str) -> "SourcePlugin[Struct]":
    """Return the declaration of a source. Raises UsageError where there is none of that name."""
    return _load("sources", name, SourcePlugin)


def framework_plugin(name: str) -> "FrameworkPlugin[Struct]":
    """Return the declaration of a framework. Raises UsageError where there is none of that name."""
    return _load("frameworks", name, FrameworkPlugin)


def load_generator_plugin(name: str | None) -> LoadGeneratorPlugin:
    """Return the declaration of a load generator, of the default one for None."""
    return _load("load_generators", name or default_load_generator(), LoadGeneratorPlugin)


def default_load_generator() -> str:
    """Return the name of the load generator that is used where a scenario names none."""
    found = [name for name in names("load_generators") if _load("load_generators", name, LoadGeneratorPlugin).default]
    if not found:
        raise UsageError(
            f"load.by: no default load generator is installed; name one of: {_list_names('load_generators')}"
        )
    return found[0]


def load_generator_for(source: "SourcePlugin[Struct]", scenario: Scenario) -> LoadGeneratorPlugin:
    """Return the load generator of a scenario for a source; where it names none, one that can reach the source.

    Raises UsageError where there is none.
    """
    if scenario.load.by is not None or not source.capabilities.in_process:
        return load_generator_plugin(scenario.load.by)
    inside = [name for name in names("load_generators") if load_generator_plugin(name).in_process]
    return load_generator_plugin(inside[0] if inside else None)


def report_plugin(name: str) -> ReportPlugin:
    """Return the declaration of a report format. Raises UsageError where there is none of that name."""
    return _load("reports", name, ReportPlugin)


def report_plugins() -> Iterator[tuple[str, ReportPlugin]]:
    """Yield every installed report format with its name; one whose packages are missing is passed over."""
    for name in names("reports"):
        try:
            yield name, report_plugin(name)
        except UsageError:
            continue


def find_report_ability(ability: Callable[[ReportPlugin], Ability | None], missing: str) -> Ability:
    """Return what the first installed report format with an ability does it with.

    Args:
        ability: returns the plugin's callable; None where it has none.
        missing: message of the UsageError that is raised where no format has one.
    """
    for _, plugin in report_plugins():
        found = ability(plugin)
        if found is not None:
            return found
    raise UsageError(missing)


def make_source(name: str, settings: SettingsByPlugin) -> Source:
    """Return the source of that name, closed, with its part of a scenario's settings."""
    plugin = source_plugin(name)
    return plugin.open(_settings(plugin.settings, name, settings))


def open_sender(endpoint: Endpoint) -> Sender:
    """Return a client of the endpoint's source, connected."""
    return source_plugin(endpoint.source).sender(endpoint)


def open_consumer(endpoint: Endpoint, member: int = 0, members: int = 1) -> Consumer:
    """Return a reader of a member's share of the endpoint, connected: what is sent from now on is not missed."""
    return _load("consumers", endpoint.source, ConsumerPlugin).open(endpoint, member, members)


def missing_consumer(name: str) -> str | None:
    """Return why no code of ours can read the source of that name; None when it can."""
    if name in names("consumers"):
        return None
    return f"there is no consumer for the source {name}; there are: {_list_names('consumers')}"


def make_framework(name: str, settings: SettingsByPlugin) -> Framework:
    """Return the framework of that name with its part of a scenario's settings; nothing of it runs yet."""
    plugin = framework_plugin(name)
    return plugin.open(_settings(plugin.settings, name, settings))


def settings_of_source(name: str, settings: SettingsByPlugin) -> Struct:
    """Return the typed settings of a source."""
    return _settings(source_plugin(name).settings, name, settings)


def settings_of_framework(name: str, settings: SettingsByPlugin) -> Struct:
    """Return the typed settings of a framework."""
    return _settings(framework_plugin(name).settings, name, settings)


def settings_type(name: str) -> type[Struct] | None:
    """Return the type of the settings of the framework or source of that name; None when there is none of that name."""
    if name in names("frameworks"):
        return framework_plugin(name).settings
    return source_plugin(name).settings if name in names("sources") else None


def make_strategy(name: str, problem: SearchProblem) -> Strategy:
    """Return a search of that name that has not planned anything yet."""
    return strategy_factory(name)(problem)


def strategy_factory(name: str) -> Callable[[SearchProblem], Strategy]:
    """Return what makes searches: the strategy of that name, or one that is given as module:Class."""
    module, colon, attribute = name.partition(":")
    if not colon:
        return _load("search", name, SearchPlugin).make
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"{name}: {module!r} names no module; allowed: a strategy, or module:Class")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
            raise
        raise UsageError(
            f"{name}: found no module {problem.name!r}; it must be installed or lie in this folder"
        ) from None
    if not callable(found):
        raise UsageError(f"{name}: {module} has no class {attribute!r}")
    factory: Callable[[SearchProblem], Strategy] = found
    return factory


def policy_plugin(name: str) -> "PolicyPlugin[Struct]":
    """Return the declaration of a scaling policy. Raises UsageError where there is none of that name."""
    return _load("policies", name, PolicyPlugin)


def make_policy(name: str, settings: SettingsByPlugin, dataflow: Dataflow) -> Policy:
    """Return the scaling policy of that name for a job, with its part of the settings.

    Raises UsageError where there is none of that name, or the settings are wrong.
    """
    plugin = policy_plugin(name)
    return plugin.make(_settings(plugin.settings, name, settings), dataflow)


def is_calibrated(strategy: str) -> bool:
    """Return whether a strategy's intervals are confidence intervals; False where it cannot be loaded here."""
    try:
        return _load("search", strategy, SearchPlugin).calibrated
    except UsageError:
        return False


def site_sections() -> dict[str, type[Struct]]:
    """Return the sections that the installed plugins add to a site file, by key."""
    return {section.key: section.type for _, _, section in sections()}


def sections() -> Iterator[tuple[str, str, Section]]:
    """Yield (kind, plugin, section) of every installed plugin with a section in the site file; frameworks come first.

    A plugin whose packages are missing is passed over.
    """
    for kind in ("frameworks", "sources"):
        for name in names(kind):
            try:
                plugin = framework_plugin(name) if kind == "frameworks" else source_plugin(name)
            except UsageError:
                continue
            if plugin.site is not None:
                yield kind, name, plugin.site


def incomplete_plugins() -> Iterator[tuple[str, str]]:
    """Yield (plugin, reason) of every source and framework that cannot be loaded because a package is missing."""
    for kind in ("frameworks", "sources"):
        for name in names(kind):
            try:
                _load_object(kind, name)
            except UsageError as reason:
                yield name, str(reason)


def site_file_type() -> type[Struct]:
    """Return the type of a site file with the sections of all installed plugins."""
    return file_type(site_sections())


def site_of(values: Struct) -> Site:
    """Return the site that a file of `site_file_type` describes."""
    return from_file(values)


def top_packages() -> set[str]:
    """Return the top-level package of every installed plugin."""
    return {entry.module.partition(".")[0] for kind in KINDS for entry in _entry_points(kind).values()}


def unknown_plugin(kind: str, name: str) -> UsageError:
    """Return the error for a name that is not installed; it lists those that are."""
    near = difflib.get_close_matches(name, names(kind), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return UsageError(f"unknown {KINDS[kind]} {name!r}; installed: {_list_names(kind)}{hint}")


def _load(kind: str, name: str, declaration: type[P]) -> P:
    plugin = _load_object(kind, name)
    if not isinstance(plugin, declaration):
        raise PluginError(name, "load", f"the entry point bench.{kind} gives no {declaration.__name__}")
    return plugin


def _load_object(kind: str, name: str) -> object:
    entry = _entry_points(kind).get(name)
    if entry is None:
        raise unknown_plugin(kind, name)
    try:
        loaded: object = entry.load()
    except ModuleNotFoundError as problem:
        own = entry.module.partition(".")[0]
        if problem.name is None or problem.name.partition(".")[0] in (own, "bench"):
            raise
        raise UsageError(
            f"the {KINDS[kind]} {name!r} needs the package {problem.name!r}, which is not installed;"
            f" run: pip install {_requirement(entry)}"
        ) from None
    except ImportError as problem:
        why = " (no memory for it, or a file system that is mounted noexec)" if _NOT_MAPPED in str(problem) else ""
        raise PluginError(name, "load", f"{problem}{why}") from problem
    return loaded


def _requirement(entry: EntryPoint) -> str:
    """Return what to install so that a plugin has all its packages: its distribution, with its extras where it has
    some.
    """
    if entry.dist is None:
        return entry.module.partition(".")[0]
    extras = entry.dist.metadata.get_all("Provides-Extra") or []
    return f"'{entry.dist.name}[all]' (extras: {', '.join(extras)})" if "all" in extras else entry.dist.name


@cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"bench.{kind}")}


def _list_names(kind: str) -> str:
    return ", ".join(names(kind)) or "none"


def _settings(kind: type[Struct], name: str, settings: SettingsByPlugin) -> Struct:
    return convert_settings(kind, settings.get(name, {}), f"settings.{name}")
