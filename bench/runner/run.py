"""The procedure of a run."""

import logging
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import HarnessError, ImpossibleMeasurementError, UsageError
from bench.model.measurement import Result
from bench.plugins.environment import RunEnvironment
from bench.plugins.environments import installed_environments
from bench.plugins.packages import scenario_packages
from bench.runner.backend import Backend, PluginBackend
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import Answer, CellSearch
from bench.runner.core_sets import core_sets, framework_cores
from bench.runner.elasticity import follow_load
from bench.runner.map_visits import MapVisits
from bench.runner.outcome import without_rate
from bench.runner.progress import CellFinished, Note, Notify
from bench.runner.shared_evidence import update_results
from bench.storage.run_folder import RunFolder
from bench.system import host_info
from bench.system.procfs import OutOfMemory
from bench.system.supervisor import Supervisor

logger = logging.getLogger(__name__)


class RunOptions(Struct, frozen=True):
    """The options of a run, besides its scenario and site."""

    command: str
    """that repeats the run"""
    cache: Path
    """for downloads; outlives the run"""
    children: Path
    """for the records of child processes; outlives the run"""
    web: bool = False
    """whether the load generator opens a page of its own, on loopback"""
    backend: Callable[[Path], Backend] = PluginBackend
    """makes what measures the cells of a run folder; a simulation in tests"""


def run(scenario: Scenario, site: Site, folder: RunFolder, notify: Notify, options: RunOptions) -> list[Result]:
    """Measure the maximum sustainable throughput of every cell of a scenario.

    1. Record scenario, site and machine in the run folder, before anything can fail.
    2. Plan every cell once: plugins, placement, bounds. A cell that its plugins cannot do is `unsupported`.
    3. Start servers, sessions and load generators that these cells share, side by side. Before large messages, use the
       free memory once.
    4. Visit every cell once, the corners of the grid first, so that most cells have measured neighbours on both sides.
       Where the search has a total, go on with visits to the cells in which more time changes most of what the map
       says, until the total is used; otherwise visit those again that other work disturbed. A cell that the load
       generator limits is visited with twice as many of its workers, while cores are idle. On each visit:
       a. Measure what the load generator can do by itself with this source and size, once a run.
       b. Give the search the cell's trials from the journal; where it still wants one, deploy source, load generator
          and framework.
       c. Until the search has its answer or the visit's time is over: run a trial, store it, check it, judge it, give
          it to the search.
       d. Measure latency where the scenario asks for it; with a total, on a last visit.
       e. Compare the answer with the bounds, and store the visit and the result, which a later visit may replace.
    5. After each pass, and at the end, compute the results again with what all cells have shown. The first pass visits
       every cell, a later one lasts half of the time that is left.
    6. However it ends: close what was deployed, end every child process, delete the data, unlock the run folder.

    A scenario of kind elasticity has policies follow a load in place of steps 4 and 5 (bench.runner.elasticity).

    A run that was interrupted is run again with the same folder: its visits and the used part of its total count.
    """
    facts = host_info.describe(options.command, scenario_packages(scenario))
    if installed := installed_environments(scenario, options.cache):
        facts["environments"] = installed
    with folder.open(scenario, site, facts), _environment(scenario, site, folder, notify, options) as env:
        plans = {cell: plan_cell(cell, scenario, site, env.cores, env.cache) for cell in scenario.cells()}
        backend = options.backend(folder.folder)
        backend.prepare([plan for cell, plan in plans.items() if not folder.has_result(cell)], env)
        if scenario.elasticity is not None:
            follow_load(list(plans.values()), env, folder, notify)
            return []
        visits = MapVisits(scenario, folder, list(plans.values()))
        for visit in visits:
            earlier, allowance = folder.result(visit.cell), visits.allowance(visit)
            notify(visits.start_event(visit))
            plan = plans[visit.cell].with_workers(visit.workers)
            search = CellSearch(plan, env, folder, notify, allowance=allowance)
            answer = measure_cell(search, backend, earlier)
            visits.end(visit, allowance, answer)
            notify(CellFinished(answer.result, visit.number, earlier))
            if visits.ends_pass():
                visits.go_on_with(update_results(folder, plans))
        update_results(folder, plans)
    return [result for result in folder.results() if result.status]


def measure_cell(search: CellSearch, backend: Backend, earlier: Result | None = None) -> Answer:
    """Return the answer of a visit to one cell, whatever becomes of it; only what the user must correct is raised.

    A result that the cell already has outlives a failure that says nothing of the cell's trials.
    """
    cell, unsupported = search.plan.cell, search.plan.unsupported_reason
    if unsupported is not None:
        return Answer(without_rate(cell, "unsupported", unsupported))
    out_of_memory = OutOfMemory()
    try:
        return search.answer(backend)
    except UsageError:
        raise
    except HarnessError as problem:
        logger.warning("%s failed: %s", cell.name, problem)
        if earlier is not None and not isinstance(problem, ImpossibleMeasurementError):
            return search.failed_answer(earlier)
        reason = out_of_memory.remark_on(str(problem).splitlines()[0])
        return Answer(without_rate(cell, "failed", reason))


def _environment(
    scenario: Scenario, site: Site, folder: RunFolder, notify: Notify, options: RunOptions
) -> RunEnvironment:
    supervisor = Supervisor(options.children, folder.folder / "logs")
    supervisor.cores_of = core_sets(scenario)
    return RunEnvironment(
        site,
        supervisor,
        folder.folder / "data",
        options.cache,
        cores=framework_cores(scenario),
        max_workers=scenario.elasticity.most if scenario.elasticity is not None else None,
        note=lambda text: notify(Note(text)),
        web=options.web,
    )
