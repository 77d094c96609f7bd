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

from bench import bounds, faces, machine, rig, rooms, trial
from bench.errors import HarnessError, UsageError
from bench.ground import Ground
from bench.measurement import Measurement, Planned, Result
from bench.process import Supervisor
from bench.scenario import Cell, Scenario
from bench.search.neighbours import hint_of, tour
from bench.search.question import Question, Strategy
from bench.site import Site
from bench.store import Store
from bench.verdict import Rules, Verdict, judge

logger = logging.getLogger(__name__)


class Watcher(Protocol):
    """Whoever wants to see a run go on; the progress display is one."""

    def note(self, text: str) -> None:
        """Something takes its time."""

    def cell_begins(self, cell: Cell, number: int, of: int) -> None: ...

    def trial_begins(self, planned: Planned) -> None: ...

    def glimpse(self, glimpse: trial.Glimpse) -> None: ...

    def trial_ends(self, seen: Measurement, verdict: Verdict) -> None: ...

    def cell_ends(self, result: Result) -> None: ...


def run(scenario: Scenario, site: Site, store: Store, watcher: Watcher, *, places: "Places") -> list[Result]:
    """Find the top rate of every cell of a scenario; resume where an earlier run in the same folder stopped."""
    store.open(scenario, site, machine.describe(places.command))  # saved before anything can fail
    cells = tour(scenario.cells())
    supervisor = Supervisor(places.registry, store.folder / "logs")
    cores = site.cores or machine.cores()
    with Ground(site, supervisor, store.folder / "data", places.cache, cores=cores, note=watcher.note) as ground:
        for number, cell in enumerate(cells, 1):
            if store.has_result(cell):
                continue
            watcher.cell_begins(cell, number, len(cells))
            result = result_of(cell, scenario, ground, store, watcher)
            store.finish(cell, result)
            watcher.cell_ends(result)
    return [result for result in store.results() if result.status]


def result_of(cell: Cell, scenario: Scenario, ground: Ground, store: Store, watcher: Watcher) -> Result:
    """The result of one cell, whatever becomes of it; only what the person must put right is raised."""
    refused = rig.refusal(cell, scenario)
    if refused is not None:
        return _without(cell, "unsupported", refused)
    try:
        with rig.standing(cell, scenario, ground) as standing:
            return search_cell(cell, scenario, standing, store, watcher)
    except UsageError:
        raise
    except HarnessError as problem:
        logger.warning("%s failed: %s", cell.name, problem)
        return _without(cell, "failed", str(problem).splitlines()[0])


def search_cell(cell: Cell, scenario: Scenario, standing: rig.Standing, store: Store, watcher: Watcher) -> Result:
    """Try rates until the search has its answer."""
    rules = Rules(scenario.objectives, float(scenario.search.precision))
    search = search_for(cell, scenario, standing.ground, store)
    for seen in store.trials(cell):  # a resumed cell knows its earlier trials
        search = search.after(seen, judge(seen, rules))
    last: Measurement | None = None
    while (planned := search.next_trial()) is not None:
        _make_ready(standing, last)
        watcher.trial_begins(planned)
        seen = trial.run(standing, planned, float(scenario.timing.drain), watcher.glimpse)
        store.add(cell, seen)  # saved before it is judged
        verdict = judge(seen, rules)
        watcher.trial_ends(seen, verdict)
        search, last = search.after(seen, verdict), seen
    return _checked(search.result())


def search_for(cell: Cell, scenario: Scenario, ground: faces.Ground, store: Store) -> Strategy:
    """The scenario's search for a cell, which has not tried anything yet."""
    bound_hz = bounds.cpu_bound(cell, ground.cores)
    question = Question(
        cell,
        scenario.search,
        scenario.timing,
        batch_interval=rig.batch_interval(cell, scenario),
        bound_hz=bound_hz,
        hint_hz=hint_of(cell, store.results(), bound_hz),
        generator_hz=generator_ceiling(cell, scenario, ground),
        objectives=scenario.objectives,
    )
    return rooms.strategy(scenario.search.strategy, question)


def generator_ceiling(cell: Cell, scenario: Scenario, ground: faces.Ground) -> float | None:  # noqa: ARG001  until it is measured
    """Messages/s that the load reaches against a null sink at this message size; None while nobody has measured it."""
    return None


def _make_ready(standing: rig.Standing, seen: Measurement | None) -> None:
    """Empty the rig after an earlier trial; a fresh one where something was left in it or died."""
    if seen is None:
        return
    if seen.drained and seen.ended in ("complete", "hopeless") and seen.lost == 0:
        standing.source.clear()
    else:
        standing.renew()


def _checked(result: Result) -> Result:
    """A result above what theory allows is an alarm, never a record."""
    if result.bound_hz is not None and (result.low_hz or 0) > 1.02 * result.bound_hz:
        reason = f"impossible: {result.low_hz:g} /s sustained, but theory allows {result.bound_hz:g} /s ({result.bound})"
        return replace(result, status="failed", reason=reason)
    return result


def _without(cell: Cell, status: str, reason: str) -> Result:
    """The result of a cell that was not searched."""
    point = (cell.system, cell.framework, cell.source, cell.message_bytes, cell.cpu_seconds)
    return Result(*point, "unsupported" if status == "unsupported" else "failed", reason)


class Places:
    """Where a run keeps what outlives it, and the command that repeats it."""

    def __init__(self, cache: Path, registry: Path, command: str) -> None:
        self.cache, self.registry, self.command = cache, registry, command
