"""The deployment behind the results of a run: its workers and cores, and the partitions that other workers need."""

from msgspec import Struct
from msgspec.structs import replace

from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.elasticity.advice import Deployed
from bench.plugins import registry
from bench.plugins.placement import default_partitions, place
from bench.plugins.plugin import FrameworkPlugin


def measured_deployment(framework: str, source: str, scenario: Scenario, site: Site, cores: int) -> Deployed:
    """Return the deployment of a system in a run.

    Args:
        framework: the plugin's name.
        source: likewise.
        scenario: of the run.
        site: of the run.
        cores: of the machine of the harness, without those that only the load generator had.

    Raises:
        UsageError: the framework is not installed here, or does not take the run's settings.
    """
    plugin, placement = registry.framework_plugin(framework), place(framework, source, site, cores)
    settings = registry.settings_of_framework(framework, scenario.settings)
    if plugin.worker_setting:
        workers = int(getattr(settings, plugin.worker_setting) or placement.cores)
        parts = registry.source_plugin(source).parts
        if parts is not None and _workers_read(plugin, settings, workers):  # one without a part has nothing to do
            of_source = registry.settings_of_source(source, scenario.settings)
            workers = min(workers, parts(of_source, _readers(plugin, settings, placement.cores)))
    else:
        workers = _readers(plugin, settings, placement.cores)
    setting = f"settings.{framework}.{plugin.worker_setting}" if plugin.worker_setting else ""
    return Deployed(workers, placement.cores, setting, placement.link)


def partitions_for(framework: str, source: str, scenario: Scenario, workers: int) -> int | None:
    """Return the partitions that so many workers of a framework need; None for a source without partitions.

    Raises:
        UsageError: the framework or the source is not installed here, or does not take the run's settings.
    """
    plugin = registry.framework_plugin(framework)
    if registry.source_plugin(source).parts is None:
        return None
    settings = registry.settings_of_framework(framework, scenario.settings)
    if plugin.worker_setting:
        settings = replace(settings, **{plugin.worker_setting: workers})
    return default_partitions(None, _readers(plugin, settings, workers))


def _workers_read(plugin: FrameworkPlugin[Struct], settings: Struct, workers: int) -> bool:
    """Return whether the workers of a framework read the source's parts themselves: more of them are more readers."""
    return all(
        _readers(plugin, replace(settings, **{plugin.worker_setting: more}), more) == more
        for more in (workers + 1, workers + 2)
    )


def _readers(plugin: FrameworkPlugin[Struct], settings: Struct, cores: int) -> int:
    """Return how many tasks of a framework with so many cores read partitions at once."""
    return cores if plugin.readers is None else plugin.readers(settings, cores)
