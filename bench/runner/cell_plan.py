"""The plan of one cell: everything that follows from scenario, site and plugins, worked out once and passed on."""

from dataclasses import dataclass
from dataclasses import replace as replace_field
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.analysis import bounds
from bench.analysis.verdict import Rules
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import UsageError
from bench.model.cell import Cell
from bench.model.measurement import Bound
from bench.model.message_filler import MAX_TEXT_ENTROPY
from bench.plugins import registry
from bench.plugins.placement import Placement, place, unreachable_reason
from bench.plugins.plugin import FrameworkPlugin, LoadGeneratorPlugin, SourcePlugin
from bench.plugins.protocols import Source
from bench.plugins.split_source import SplitSource
from bench.services.python_environments import missing_reason
from bench.system import host_info

LEAST_TRACED_COST_S = 0.005
"""CPU cost of a message from which cells are traced unless a scenario says otherwise. A batch takes that long at least;
a trace took 42 µs of each, in worker and harness together, on the slowest machine that was tried."""


@dataclass(frozen=True)
class CellPlan:
    """Everything that is known of a cell before anything is started for it."""

    cell: Cell
    scenario: Scenario
    source: SourcePlugin[Struct]
    framework: FrameworkPlugin[Struct]
    load_generator: LoadGeneratorPlugin
    placement: Placement
    bounds: tuple[Bound, ...]
    """the lowest first"""
    batch_interval: float
    """seconds between two moments at which the framework shows progress; 0 when it goes on continuously"""
    unsupported_reason: str | None
    several_senders: bool
    """whether several hosts send; the bandwidth of one card does not bound them"""
    max_workers: int
    """of the load generator; as many as it begins with where more cannot help, or the scenario sets their number"""

    @property
    def hard_bound(self) -> Bound | None:
        """Return the lowest hard bound; None where none is known."""
        return next((bound for bound in self.bounds if bound.hard), None)

    @property
    def soft_bounds(self) -> tuple[Bound, ...]:
        """Return the soft bounds, the lowest first."""
        return tuple(bound for bound in self.bounds if not bound.hard)

    @property
    def warm_up_s(self) -> float:
        """Return the seconds of load on new processes before anything is measured; 0 if none is known to be needed."""
        usual, asked = self.framework.capabilities.warm_up_s or 0.0, self.scenario.timing.warm_up
        return usual if asked is None or usual == 0 else float(asked)

    @property
    def traced(self) -> bool:
        """Return whether traces of the cell's trials are kept: what the scenario says, else where that costs little.

        What a trace costs the driver of batches is not known well enough, and nothing explains a run of policies.
        """
        if self.scenario.trace is not None:
            return self.scenario.trace
        continuous = self.batch_interval == 0 and self.scenario.elasticity is None
        return continuous and self.cell.cpu_seconds >= LEAST_TRACED_COST_S

    @property
    def workers(self) -> int:
        """Return the number of the load generator's processes."""
        return self.scenario.load.worker_count

    def with_workers(self, workers: int) -> "CellPlan":
        """Return the plan with another number of the load generator's processes."""
        load = replace(self.scenario.load, workers=workers)
        return replace_field(self, scenario=replace(self.scenario, load=load))

    @property
    def remark(self) -> str | None:
        """Return what the framework says to a reader of the cell's result; None where that is nothing."""
        if self.framework.remark is None:
            return None
        settings = registry.settings_of_framework(self.cell.framework, self.scenario.settings)
        return self.framework.remark(settings, self.cell.source)

    @property
    def rules(self) -> Rules:
        """Return what the scenario judges its trials by."""
        return Rules(self.scenario.objectives, float(self.scenario.search.precision))


def plan_cell(cell: Cell, scenario: Scenario, site: Site, cores: int, cache: Path | None = None) -> CellPlan:
    """Plan a cell.

    Args:
        cell: the cell.
        scenario: the scenario that it is of.
        site: where services exist already.
        cores: cores of this machine that a framework here has.
        cache: folder with what `bench install` has installed; None where nothing will be run.

    Raises:
        UsageError: a plugin is not installed, or does not take its settings.
    """
    source = registry.make_source(cell.source, scenario.settings)
    framework = registry.make_framework(cell.framework, scenario.settings)
    source_plugin, framework_plugin = registry.source_plugin(cell.source), registry.framework_plugin(cell.framework)
    load_generator = registry.load_generator_for(source_plugin, scenario)
    placement = place(cell.framework, cell.source, site, cores, scenario.settings)
    several_senders = site.load is not None
    max_senders = _max_senders(cell, scenario, site, source)
    reason = (
        _load_generator_reason(cell, scenario, source_plugin, load_generator, max_senders=max_senders)
        or missing_keys_reason(cell, scenario)
        or unreachable_reason(cell.framework, cell.source, site)
        or framework.unsupported_reason(cell, cell.source)
        or source.unsupported_reason(cell, float(scenario.load.entropy))
        or _binary_filler_reason(cell, scenario, framework_plugin)
        or _environment_reason(framework_plugin, cache)
        or _not_elastic_reason(cell, scenario, framework_plugin)
        or None
    )
    return CellPlan(
        cell=cell,
        scenario=scenario,
        source=source_plugin,
        framework=framework_plugin,
        load_generator=load_generator,
        placement=placement,
        bounds=tuple(_cell_bounds(cell, scenario, site, placement, several_senders=several_senders)),
        batch_interval=framework.batch_interval,
        unsupported_reason=reason,
        several_senders=several_senders,
        max_workers=_max_workers(scenario, source_plugin, load_generator, max_senders),
    )


def missing_keys_reason(cell: Cell, scenario: Scenario) -> str | None:
    """Return why messages of a cell's source cannot have the keys that the scenario asks for.

    None when they can, or need none.
    """
    if scenario.load.keys is None or registry.source_plugin(cell.source).capabilities.keyed:
        return None
    keyed = [name for name in registry.names("sources") if name != cell.source and _is_keyed(name)]
    return (
        f"load.keys: messages of {cell.source} have no keys; leave it out, or use a source that has them"
        f" ({', '.join(keyed) or 'none is installed'})"
    )


def _is_keyed(source: str) -> bool:
    try:
        return registry.source_plugin(source).capabilities.keyed
    except UsageError:
        return False


def _max_senders(cell: Cell, scenario: Scenario, site: Site, source: Source) -> int | None:
    """Return how many senders can serve a cell; None for any number."""
    if registry.source_plugin(cell.source).capabilities.single_writer:
        return 1
    max_addresses = registry.framework_plugin(cell.framework).max_addresses
    if max_addresses is None or not isinstance(source, SplitSource):
        return None
    return max_addresses(registry.settings_of_framework(cell.framework, scenario.settings), cell.source, site)


def _load_generator_reason(
    cell: Cell,
    scenario: Scenario,
    source: SourcePlugin[Struct],
    load_generator: LoadGeneratorPlugin,
    *,
    max_senders: int | None,
) -> str | None:
    workers = scenario.load.worker_count
    if workers > 1 and load_generator.in_process:
        return f"load.workers: {workers}, but this load generator is one thread of the harness; leave load.by out"
    if max_senders is not None and workers > max_senders:
        return f"load.workers: {workers}, but {cell.system} takes messages of {max_senders} at most"
    if source.capabilities.in_process and not load_generator.in_process:
        return f"{cell.source} exists only within the harness's process, where the load generator does not run"
    return None


def _binary_filler_reason(cell: Cell, scenario: Scenario, framework: FrameworkPlugin[Struct]) -> str | None:
    entropy = float(scenario.load.entropy)
    if entropy <= MAX_TEXT_ENTROPY or cell.source not in framework.capabilities.text_only:
        return None
    return (
        f"{cell.framework} reads {cell.source} as lines of text, which cannot carry a binary filler:"
        f" load.entropy {entropy:g} is above {MAX_TEXT_ENTROPY:g}"
    )


def _not_elastic_reason(cell: Cell, scenario: Scenario, framework: FrameworkPlugin[Struct]) -> str | None:
    if scenario.elasticity is None:
        return None
    sources = framework.elastic_sources
    if framework.not_elastic or sources is None or cell.source in sources:
        return framework.not_elastic
    return f"workers of {cell.framework} come and go only while it reads {', '.join(sources)}"


def _environment_reason(framework: FrameworkPlugin[Struct], cache: Path | None) -> str | None:
    if framework.environment is None or cache is None:
        return None
    return missing_reason(framework.environment, cache)


def _max_workers(
    scenario: Scenario, source: SourcePlugin[Struct], load_generator: LoadGeneratorPlugin, max_senders: int | None
) -> int:
    """Return the greatest number of the load generator's processes; a site sets their number in the scenario."""
    load = scenario.load
    fixed = load.workers is not None or load.limit is not None
    if fixed or load_generator.in_process or source.capabilities.in_process:
        return load.worker_count
    cores = load.cores or host_info.cores()
    return cores if max_senders is None else min(cores, max_senders)


def _cell_bounds(
    cell: Cell, scenario: Scenario, site: Site, placement: Placement, *, several_senders: bool
) -> list[Bound]:
    plugin = registry.source_plugin(cell.source)
    copies = None
    if plugin.copies is not None:
        copies = plugin.copies(registry.settings_of_source(cell.source, scenario.settings), site)
    disk = float(site.disk) if site.disk is not None else None
    return bounds.cell_bounds(cell, placement.cores, copies, network=placement.link, disk=disk, cards=several_senders)
