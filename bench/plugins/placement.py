"""Placement of a system's parts, and what follows: cores, bandwidth, and why a system cannot run on a site."""

from msgspec import Struct

from bench.config.site import Site
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.site_section import ExternalService, Section

MIN_PARTITIONS = 2
"""Of a topic whose scenario does not say: with one only, nothing could be read side by side."""


class Placement(Struct, frozen=True):
    """The placement of a framework and its source: on this machine or on the site."""

    framework_remote: bool
    source_remote: bool
    load_remote: bool
    framework_ours: bool
    """whether the framework's work is done by processes that we start, or that run where the site file says"""
    cores: int
    """that the framework has, wherever it runs"""
    link: float | None
    """bytes/s at which messages can reach the framework, in one direction; None within one machine, or where it is not
    known"""

    @property
    def unseen_roles(self) -> frozenset[str]:
        """Return the roles ("framework", "source") whose resources nobody here sees.

        Their processes run on other hosts, or are not ours.
        """
        unseen = {"framework": self.framework_remote or not self.framework_ours, "source": self.source_remote}
        return frozenset(role for role, is_unseen in unseen.items() if is_unseen)

    @property
    def sees_other_work(self) -> bool:
        """Return whether CPU time of this machine that our processes did not use counts as other work.

        Not where nothing of the cell runs here, nor where the framework itself may have used that time.
        """
        here = not (self.framework_remote and self.source_remote and self.load_remote)
        return here and (self.framework_remote or self.framework_ours)


def place(
    framework: str, source: str, site: Site, cores: int, settings: registry.SettingsByPlugin | None = None
) -> Placement:
    """Return where a system runs.

    Args:
        framework: its plugin's name; one that is not installed counts as running here, so that old runs can be
            reported.
        source: likewise.
        site: the site of the run.
        cores: cores of this machine that a framework here has.
        settings: of the scenario by plugin, which may say that a framework's processes are not ours; None: they are.

    Raises:
        UsageError: the framework does not take its settings.
    """
    service = framework_service(framework, site)
    framework_remote = service is not None and service.remote
    source_remote = _is_remote(_source_section(source), site)
    if service is not None and framework_remote:
        cores = service.cores or site.cores or cores
    crosses = site.load is not None or framework_remote or source_remote
    link = float(site.bandwidth) if crosses and site.bandwidth is not None else None
    return Placement(
        framework_remote,
        source_remote,
        load_remote=site.load is not None,
        framework_ours=settings is None or _is_seen(framework, settings),
        cores=cores,
        link=link,
    )


def partitions(configured: int | None, cell: Cell, env: RunEnvironment) -> int:
    """Return the partitions of a cell's topic.

    Args:
        configured: of the settings; None for as many as the framework has cores, or may have workers where these come
            and go, and `MIN_PARTITIONS` at least.
        cell: the cell.
        env: the environment of the run.
    """
    cores = place(cell.framework, cell.source, env.site, env.cores).cores
    return default_partitions(configured, max(cores, env.max_workers or 0))


def default_partitions(configured: int | None, cores: int) -> int:
    """Return the partitions of the settings, or, for None, one for each core of a framework."""
    return configured or max(MIN_PARTITIONS, cores)


def framework_service(framework: str, site: Site) -> ExternalService | None:
    """Return what the site file says of a framework; None where it says nothing."""
    if framework not in registry.names("frameworks"):
        return None
    section = registry.framework_plugin(framework).site
    return None if section is None else section.service(site)


def unreachable_reason(framework: str, source: str, site: Site) -> str | None:
    """Return why a framework, or the load, could not reach a source; None when both can, or nothing is known of it."""
    placement = place(framework, source, site, 1)
    found, reads = registry.source_plugin(source), registry.framework_plugin(framework)
    if found.capabilities.in_process and not reads.capabilities.in_process:
        return f"{source} exists only within the harness's process, and {framework} reads with processes of its own"
    if not placement.source_remote and (reason := _load_hosts_reason(source, found.site, site)) is not None:
        return reason
    if not placement.framework_remote or found.site is None or found.site.service(site) is not None:
        return None
    return (
        f"{framework} runs on the site, {source} on this machine, where it is not reached:"
        f" the site file has no `{found.site.key}`"
    )


def _load_hosts_reason(source: str, section: Section | None, site: Site) -> str | None:
    """Return why load workers of other hosts cannot serve a source that is not remote; None when they can."""
    service = None if section is None else section.service(site)
    most = 0 if service is None else service.load_workers
    if site.load is None or most is None or most >= site.load.workers:
        return None
    if most > 0:
        return f"the site file has {site.load.workers} load workers, and of {source} addresses for {most} of them"
    return (
        f"{source} runs on this machine, where load generators of other hosts do not reach it;"
        " leave `load` out of the site file, or name a source of the site"
    )


def _source_section(source: str) -> Section | None:
    return registry.source_plugin(source).site if source in registry.names("sources") else None


def _is_seen(framework: str, settings: registry.SettingsByPlugin) -> bool:
    if framework not in registry.names("frameworks"):
        return True
    unseen = registry.framework_plugin(framework).unseen
    return unseen is None or not unseen(registry.settings_of_framework(framework, settings))


def _is_remote(section: Section | None, site: Site) -> bool:
    service = None if section is None else section.service(site)
    return service is not None and service.remote
