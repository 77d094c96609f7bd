"""The main path: a scenario's cells, one after the other; for each a rig, a search, its trials; everything saved as it is seen.

    scenario -> cells -> for each cell:  rig stands -> search plans a trial -> trial is made -> saved -> judged -> search learns
                                         ... until the search has its answer -> result saved -> rig is taken down

A run that was interrupted is run again with the same folder: finished cells are passed over, and the search of an unfinished cell
learns its earlier trials from the journal before it plans the next one.
"""

import logging
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from bench.analysis import bounds
from bench.analysis.sanity import failed_sanity_check
from bench.analysis.verdict import Rules, Verdict, judge
from bench.calibration import generator_ceiling
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import HarnessError, ImpossibleMeasurementError, UsageError
from bench.model.cell import Cell
from bench.model.measurement import Bound, Measurement, Planned, Result
from bench.plugins import protocols, registry
from bench.plugins.environment import RunEnvironment
from bench.runner import deployment, trial
from bench.search.priors import cell_order, hint_of
from bench.search.problem import SearchProblem, Strategy
from bench.storage.run_folder import RunFolder
from bench.system import host_info
from bench.system.supervisor import Role, Supervisor

logger = logging.getLogger(__name__)


class ProgressListener(Protocol):
    """Whoever wants to see a run go on; the progress display is one."""

    def note(self, text: str) -> None:
        """Something takes its time."""

    def cell_begins(self, cell: Cell, number: int, of: int) -> None: ...

    def trial_begins(self, planned: Planned) -> None: ...

    def trial_progress(self, trial_progress: trial.TrialProgress) -> None: ...

    def trial_ends(self, seen: Measurement, verdict: Verdict) -> None: ...

    def cell_ends(self, result: Result) -> None: ...


def run(
    scenario: Scenario, site: Site, store: RunFolder, watcher: ProgressListener, *, places: "Places"
) -> list[Result]:
    """Find the top rate of every cell of a scenario; resume where an earlier run in the same folder stopped."""
    store.open(scenario, site, host_info.describe(places.command))  # saved before anything can fail
    cells = cell_order(scenario.cells())
    supervisor = Supervisor(places.registry, store.folder / "logs")
    supervisor.cores_of = cores_of(scenario)
    cores = len(supervisor.cores_of.get("framework", ())) or host_info.cores()
    with RunEnvironment(
        site,
        supervisor,
        store.folder / "data",
        places.cache,
        cores=cores,
        note=watcher.note,
        workers=scenario.load.workers,
        web=places.web,
    ) as env:
        for number, cell in enumerate(cells, 1):
            if store.has_result(cell):
                continue
            watcher.cell_begins(cell, number, len(cells))
            result = result_of(cell, scenario, env, store, watcher)
            store.finish(cell, result)
            watcher.cell_ends(result)
    return [result for result in store.results() if result.status]


def cores_of(scenario: Scenario) -> dict[Role, list[int]]:
    """Where children may run, by role; empty where load and system share all cores. UsageError when none would be left."""
    own, all_of = scenario.load.cores, host_info.core_numbers()
    if own is None:
        return {}
    if own >= len(all_of):
        raise UsageError(
            f"load.cores: {own} of {len(all_of)} cores would leave none for the framework; give fewer or leave it out"
        )
    return {"load": all_of[-own:], "source": all_of[:-own], "framework": all_of[:-own]}


def result_of(
    cell: Cell, scenario: Scenario, env: RunEnvironment, store: RunFolder, watcher: ProgressListener
) -> Result:
    """The result of one cell, whatever becomes of it; only what the person must put right is raised."""
    refused = deployment.unsupported_reason(cell, scenario, env.site)
    if refused is not None:
        return _without(cell, "unsupported", refused)
    _calibrate(cell, scenario, env, store)
    try:
        search = resumed(cell, scenario, env, store)
        found = answer(search, cell, scenario, env)
        if search.next_trial() is None and not remaining_latency_trials(cell, found, scenario, store):
            return found  # its journal is whole, only the result was lost
        with deployment.deployed(cell, scenario, env) as deployed:
            return search_cell(search, scenario, deployed, store, watcher)
    except UsageError:
        raise
    except HarnessError as problem:
        logger.warning("%s failed: %s", cell.name, problem)
        return _without(cell, "failed", str(problem).splitlines()[0])


def search_cell(
    search: Strategy, scenario: Scenario, deployed: deployment.Deployment, store: RunFolder, watcher: ProgressListener
) -> Result:
    """Try rates until the search has its answer."""
    last: Measurement | None = None
    while (planned := search.next_trial()) is not None:
        if last is None and planned.number > 0 and planned.purpose != "warm-up":
            last = warm_up(planned, scenario, deployed, watcher, after=last)
        last, verdict = run_trial(planned, scenario, deployed, store, watcher, after=last)
        search = search.after(last, verdict)
    result = answer(search, deployed.cell, scenario, deployed.env)
    try:
        for planned in remaining_latency_trials(deployed.cell, result, scenario, store):
            if last is None or not last.left_clean:
                last = warm_up(planned, scenario, deployed, watcher, after=last)
            last, _ = run_trial(planned, scenario, deployed, store, watcher, after=last)
    except (UsageError, ImpossibleMeasurementError):
        raise
    except HarnessError as problem:  # the rate is known all the same
        logger.warning("%s: its latency is not measured: %s", deployed.cell.name, problem)
    return result


def warm_up(
    planned: Planned,
    scenario: Scenario,
    deployed: deployment.Deployment,
    watcher: ProgressListener,
    *,
    after: Measurement | None,
) -> Measurement:
    """A trial at half the rate of the next one, on a rig that the search does not know to be fresh; nobody learns what it saw."""
    _make_ready(deployed, after)
    half = replace(planned, rate=planned.rate / 2, purpose="warm-up")
    watcher.trial_begins(half)
    seen = trial.run(deployed, half, float(scenario.timing.drain), watcher.trial_progress)
    watcher.trial_ends(seen, judge(seen, rules_of(scenario)))
    return seen


def resumed(cell: Cell, scenario: Scenario, env: protocols.RunEnvironment, store: RunFolder) -> Strategy:
    """The search for a cell, which knows the trials that the journal has of it."""
    search = search_for(cell, scenario, env, store)
    for seen in store.trials(cell):
        _check_sanity(seen, cell, env)
        if seen.planned.purpose != "latency":
            search = search.after(seen, judge(seen, rules_of(scenario)))
    return search


def answer(search: Strategy, cell: Cell, scenario: Scenario, env: protocols.RunEnvironment) -> Result:
    """What a search has found, with the bound that it reached."""
    return _checked(under(deployment.cell_bounds(cell, scenario, env.site, env.cores), search.result()))


def run_trial(
    planned: Planned,
    scenario: Scenario,
    deployed: deployment.Deployment,
    store: RunFolder,
    watcher: ProgressListener,
    *,
    after: Measurement | None,
) -> tuple[Measurement, Verdict]:
    """One trial: made, saved, judged, shown; `after` is the one before it on the same rig."""
    _make_ready(deployed, after)
    watcher.trial_begins(planned)
    seen = trial.run(deployed, planned, float(scenario.timing.drain), watcher.trial_progress)
    store.add(deployed.cell, seen)  # saved before it is judged
    _check_sanity(seen, deployed.cell, deployed.env)
    verdict = judge(seen, rules_of(scenario))
    watcher.trial_ends(seen, verdict)
    return seen, verdict


def remaining_latency_trials(cell: Cell, result: Result, scenario: Scenario, store: RunFolder) -> list[Planned]:
    """The trials that measure latency, at the scenario's shares of the rate that was confirmed, less those that the journal has."""
    if result.confirmed_hz is None or not scenario.latency.at:
        return []
    trials, confirmed, window = store.trials(cell), result.confirmed_hz, float(scenario.latency.window)
    made = sum(seen.planned.purpose == "latency" for seen in trials)
    settle = max(1.0, 2 * deployment.batch_interval(cell, scenario))
    shares = [float(share) for share in scenario.latency.at[made:]]
    return [
        Planned(len(trials) + place, confirmed * share, settle, window, "latency") for place, share in enumerate(shares)
    ]


def rules_of(scenario: Scenario) -> Rules:
    """What a scenario judges its trials by."""
    return Rules(scenario.objectives, float(scenario.search.precision))


def search_for(cell: Cell, scenario: Scenario, env: protocols.RunEnvironment, store: RunFolder) -> Strategy:
    """The scenario's search for a cell, which has not tried anything yet."""
    lowest = next((bound for bound in deployment.cell_bounds(cell, scenario, env.site, env.cores) if bound.hard), None)
    bound_hz = lowest.hz if lowest is not None else None
    question = SearchProblem(
        cell,
        scenario.search,
        scenario.timing,
        batch_interval=deployment.batch_interval(cell, scenario),
        bound_hz=bound_hz,
        bound=lowest.name if lowest is not None else "cpu",
        hint_hz=hint_of(cell, store.results(), bound_hz),
        generator_hz=generator_ceiling.known_ceiling(cell, scenario, store.folder),
        objectives=scenario.objectives,
    )
    return registry.strategy(scenario.search.strategy, question)


def _calibrate(cell: Cell, scenario: Scenario, env: RunEnvironment, store: RunFolder) -> None:
    """Have the load's own limit for a cell in the run's folder, before anything of the cell stands; a cell can do without it."""
    try:
        generator_ceiling.generator_ceiling(cell, scenario, env, store.folder)
    except HarnessError as problem:
        logger.warning("%s: the load could not be calibrated: %s", cell.name, problem)


def _make_ready(deployed: deployment.Deployment, seen: Measurement | None) -> None:
    """Empty the rig after an earlier trial; a fresh one where something was left in it or died."""
    if seen is None:
        return
    if seen.left_clean:
        deployed.source.clear()
    else:
        deployed.redeploy()


def under(cell_bounds: list[Bound], result: Result) -> Result:
    """Add the soft bounds; set `limited_by` to a bound that the estimate reaches."""
    reached = bounds.reached_bound(result.estimate_hz or 0.0, cell_bounds)
    named = result.limited_by if reached is None or result.limited_by == "generator" else reached.name
    return replace(result, limited_by=named, soft_bounds=tuple(bound for bound in cell_bounds if not bound.hard))


def _check_sanity(seen: Measurement, cell: Cell, env: protocols.RunEnvironment) -> None:
    """Raise Impossible where a trial's figures cannot be."""
    bound = bounds.cpu_bound(cell, env.site.cores_of(cell.framework, env.cores))
    link = env.site.link(cell.framework, cell.source) if env.site.load is None else None  # several hosts have several
    if (
        why := failed_sanity_check(seen, cell, bound_hz=bound, link=float(link) if link is not None else None)
    ) is not None:
        raise ImpossibleMeasurementError(f"trial {seen.planned.number}: {why}")


def _checked(result: Result) -> Result:
    """A result above what theory allows is an alarm, never a record; an interval ends where theory does.

    One that reaches what our own generator can do says only that the system does at least so much.
    """
    if result.bound_hz is not None and (result.low_hz or 0) > 1.02 * result.bound_hz:
        reason = (
            f"impossible: {result.low_hz:g} /s sustained, but theory allows {result.bound_hz:g} /s ({result.bound})"
        )
        return replace(
            result, status="failed", reason=reason, estimate_hz=None, low_hz=None, high_hz=None, confirmed_hz=None
        )
    if result.status == "measured" and result.generator_hz and (result.high_hz or 0) >= result.generator_hz:
        return replace(result, status="lower-bound", reason="generator", limited_by="generator", high_hz=None)
    if result.bound_hz is not None and result.high_hz is not None and result.status in ("measured", "lower-bound"):
        return replace(result, high_hz=min(result.high_hz, max(result.bound_hz, result.estimate_hz or 0.0)))
    return result


def _without(cell: Cell, status: str, reason: str) -> Result:
    """The result of a cell that was not searched."""
    point = (cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds)
    return Result(*point, "unsupported" if status == "unsupported" else "failed", reason, sizes=cell.sizes)


class Places:
    """Where a run keeps what outlives it, and the command that repeats it."""

    def __init__(self, cache: Path, registry: Path, command: str, *, web: bool = False) -> None:
        self.cache, self.registry, self.command, self.web = cache, registry, command, web
