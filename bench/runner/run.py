"""The procedure of a run."""

import logging
from pathlib import Path

from msgspec import Struct

from bench.calibration.generator_ceiling import GeneratorCeilings
from bench.config.scenario import Scenario
from bench.config.site import Site
from bench.errors import HarnessError, UsageError
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import CellSearch
from bench.runner.core_sets import core_sets
from bench.runner.outcome import without_rate
from bench.runner.preparation import prepare_services
from bench.runner.progress import CellFinished, CellStarted, Note, Notify
from bench.search.priors import cell_order
from bench.storage.run_folder import RunFolder
from bench.system import host_info
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


def run(scenario: Scenario, site: Site, folder: RunFolder, notify: Notify, options: RunOptions) -> list[Result]:
    """Measure the maximum sustainable throughput of every cell of a scenario.

    1. Record scenario, site and machine in the run folder, before anything can fail.
    2. Order the cells: corners of the grid first, so that most cells have measured neighbours on both sides.
    3. Start servers, sessions and load generators that these cells share, side by side.
    4. For each cell that has no result yet:
       a. Plan it: plugins, placement, bounds. A cell that its plugins cannot do is `unsupported`.
       b. Measure what the load generator can do by itself with this source and size, once a run.
       c. Give the search the cell's trials from the journal; where it still wants one, deploy source, load generator
           and framework.
       d. Until the search has its answer: run a trial, store it, check it, judge it, give it to the search.
       e. Measure latency where the scenario asks for it.
       f. Hold the answer against theory, and store the result.
    5. However it ends: close what was deployed, end every child process, delete the data.

    A run that was interrupted is run again with the same folder: cells with a result are passed over.
    """
    folder.open(scenario, site, host_info.describe(options.command, registry.packages(scenario)))
    cells = cell_order(scenario.cells())
    with _environment(scenario, site, folder, notify, options) as env:
        ceilings = GeneratorCeilings(folder.folder)
        left = [plan_cell(cell, scenario, site, env.cores) for cell in cells if not folder.has_result(cell)]
        prepare_services(left, env)
        for number, cell in enumerate(cells, 1):
            if folder.has_result(cell):
                continue
            notify(CellStarted(cell, number, len(cells)))
            result = measure_cell(cell, scenario, env, folder, notify, ceilings)
            folder.save_result(cell, result)
            notify(CellFinished(result))
    return [result for result in folder.results() if result.status]


def measure_cell(
    cell: Cell,
    scenario: Scenario,
    env: RunEnvironment,
    folder: RunFolder,
    notify: Notify,
    ceilings: GeneratorCeilings,
) -> Result:
    """Return the result of one cell, whatever becomes of it; only what the user must correct is raised."""
    plan = plan_cell(cell, scenario, env.site, env.cores)
    if plan.unsupported_reason is not None:
        return without_rate(cell, "unsupported", plan.unsupported_reason)
    try:
        return CellSearch(plan, env, folder, notify).result(ceilings.measure(cell, scenario, env))
    except UsageError:
        raise
    except HarnessError as problem:
        logger.warning("%s failed: %s", cell.name, problem)
        return without_rate(cell, "failed", str(problem).splitlines()[0])


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
        cores=len(supervisor.cores_of.get("framework", ())) or host_info.cores(),
        note=lambda text: notify(Note(text)),
        workers=scenario.load.workers,
        web=options.web,
    )
