"""The visits of a run: which cell comes next, what its search is allowed, and the record of what became of it."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import mean

from bench.config.scenario import Scenario
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.runner.cell_plan import CellPlan
from bench.runner.cell_search import Allowance, Answer
from bench.runner.outcome import remaining_latency_trials
from bench.runner.progress import CellStarted
from bench.runner.shared_evidence import update_results
from bench.search.map_budget import (
    DEFAULT_OVERHEAD_S,
    MIN_VISIT_S,
    CellState,
    Visit,
    decisive_cells,
    ends_pass,
    next_single_visit,
    next_visit,
    search_seconds,
)
from bench.search.parameters import SearchParameters
from bench.search.priors import cell_order
from bench.search.trial_planning import shortest_search
from bench.storage.records import FORMAT, VisitRecord
from bench.storage.run_folder import RunFolder, TrialSums, read_visits, sum_trials
from bench.system import host_info
from bench.system.machine_speed import measure_speed

logger = logging.getLogger(__name__)

OVERHEAD_VISITS = 3
"""The overhead of a visit is the mean of so many last ones of the system."""
MAX_BUSY_SHARE = 0.9
"""Up to this share of a machine's cores in use, more workers of the load generator may send more."""


class MapVisits:
    """The visits of a run in their order, which continue those that its folder has."""

    def __init__(
        self,
        scenario: Scenario,
        folder: RunFolder,
        plans: Sequence[CellPlan] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take up the visits that the folder has.

        Args:
            scenario: The scenario of the run.
            folder: Its folder, open.
            plans: Of the cells, where they are known.
            clock: CLOCK_MONOTONIC seconds.
        """
        self.cells = cell_order(scenario.cells())
        self._scenario, self._folder, self._clock = scenario, folder, clock
        self._plans = {plan.cell: plan for plan in plans}
        self._warming = {plan.cell for plan in plans if plan.warm_up_s > 0}
        self._workers = {plan.cell: (plan.workers, plan.max_workers) for plan in plans}
        self._min_s = {plan.cell: shortest_search(plan.batch_interval, SearchParameters()) for plan in plans}
        visits = read_visits(folder.folder)
        # one of a cell that was unsupported used its time, but the cell's first visit is still to come
        self._records = [one for one in visits if one.budget or one.trials or folder.has_result(one.cell)]
        self._resumed = len(self._records)
        self._sums = sum_trials(folder.folder)
        recorded = {record.cell: record.trial_seconds for record in self._records}
        # trials of a visit that was killed: their time is used, and belongs to the next visit
        unrecorded = sum(max(0.0, sums.seconds - recorded.get(cell, 0.0)) for cell, sums in self._sums.items())
        self._used_s = sum(visit.seconds for visit in visits)
        self._mark = clock() - unrecorded
        self._pass_s = math.inf
        self._updated: set[Cell] = set()

    def __iter__(self) -> Iterator[Visit]:
        """Yield the visits to make; each is recorded by `end` before the next one is asked for."""
        while (visit := self._next_visit()) is not None:
            yield visit
        if self.total_s is not None and self._scenario.latency.at:
            yield from self._latency_visits()

    @property
    def total_s(self) -> float | None:
        """The seconds of the scenario's total for the search; None without a total. The rest is for latency trials."""
        return search_seconds(self._scenario, len(self.cells))

    def remaining_s(self) -> float | None:
        """Return the seconds of the total that are left, below 0 if it was exceeded; None without a total."""
        return None if self.total_s is None else self.total_s - self._elapsed_s()

    def states(self) -> list[CellState]:
        """Return the states of all cells in the order of the run."""
        results = {result.cell: result for result in self._folder.results()}
        decisive, overheads = decisive_cells(list(results.values())), _mean_overheads(self._records)
        states = []
        for cell in self.cells:
            own = [record for record in self._records if record.cell == cell]
            sums = self._sums.get(cell, TrialSums())
            first_workers, max_workers = self._workers.get(cell, (1, 1))
            workers, result = own[-1].workers if own else first_workers, results.get(cell)
            state = CellState(
                cell,
                result,
                visits=len(own),
                seconds=sum(record.seconds for record in own),
                trials=sums.count,
                trial_s=sums.seconds,
                finished=bool(own) and (own[-1].finished or self._fails_again(cell)) and cell not in self._updated,
                decides=cell in decisive,
                refused_s=_refused_seconds(own),
                min_s=self._min_s.get(cell, MIN_VISIT_S),
                overhead_s=overheads.get(cell.system, DEFAULT_OVERHEAD_S),
                warms_up=cell in self._warming,
                retries=len({record.ignored for record in own if record.ignored}),
                workers=workers,
                more_workers=2 * workers if 2 * workers <= max_workers and _has_idle_cores(sums) else None,
            )
            states.append(state)
        return states

    def allowance(self, visit: Visit) -> Allowance:
        """Return what the search of a visit is allowed and was given before."""
        own = [record for record in self._records if record.cell == visit.cell]
        last = own[-1] if own else None
        spent = next((record.budget for record in reversed(own) if record.budget), 0.0)
        ignored = last.ignored if last is not None else 0
        if visit.retry:
            ignored = self._sums.get(visit.cell, TrialSums()).count
        budget: float | None = None
        if spent and not self._folder.has_result(visit.cell):
            budget = spent  # the result is lost; it follows from the journal
        elif visit.seconds is None and not visit.retry:
            budget = float(self._scenario.search.budget)
        remaining = self.remaining_s()
        return Allowance(
            budget,
            visit.seconds if visit.seconds is not None else float(self._scenario.search.budget),
            deadline=math.inf if remaining is None or visit.number == 1 else self._clock() + remaining,
            possible=self.total_s or 0.0,
            ignored=ignored,
            first=last is None,
            hint_hz=last.hint_hz if last is not None else None,
            latency=visit.seconds is None or visit.latency,
        )

    def start_event(self, visit: Visit) -> CellStarted:
        """Return the event with which a visit begins."""
        number, done = self.cells.index(visit.cell) + 1, sum(self._folder.has_result(cell) for cell in self.cells)
        left = self.remaining_s()
        return CellStarted(visit.cell, number, len(self.cells), visit.number, done, left, self.total_s, visit.workers)

    def end(self, visit: Visit, allowance: Allowance, answer: Answer) -> None:
        """Record a visit that has ended, then save its result, which follows from the journal if it is lost."""
        sums = self._sums[visit.cell] = sum_trials(self._folder.folder).get(visit.cell, TrialSums())
        now = self._clock()
        record = VisitRecord(
            FORMAT,
            visit.cell,
            budget=answer.budget,
            allotted=allowance.seconds,
            seconds=now - self._mark,
            trials=sums.count,
            trial_seconds=sums.seconds,
            ignored=allowance.ignored,
            workers=visit.workers,
            hint_hz=answer.hint_hz,
            finished=answer.finished,
            failed=answer.failed,
            speed=measure_speed(),
        )
        self._folder.add_visit(record)
        self._records.append(record)
        self._updated.discard(visit.cell)
        self._used_s, self._mark = self._used_s + record.seconds, now
        self._folder.save_result(visit.cell, answer.result)

    def ends_pass(self) -> bool:
        """Return True if every cell has a result, and half of the time is used that was left after the last pass.

        Without a total there are no passes.
        """
        left = self.remaining_s()
        every = all(self._folder.has_result(cell) for cell in self.cells)
        if left is None or not ends_pass(left, self._pass_s, every=every):
            return False
        self._pass_s = left
        return True

    def go_on_with(self, cells: Iterable[Cell]) -> None:
        """Visit cells again whose results were computed with other inputs, though their searches had ended."""
        self._updated.update(cells)

    def _latency_visits(self) -> Iterator[Visit]:
        """Yield a last visit to each cell with a confirmed rate, until the whole total is used.

        Latency is measured at shares of the rates that the run ends with, so that these are computed first.
        """
        update_results(self._folder, self._plans)
        states = {state.cell: state for state in self.states()}
        cells = [result.cell for result in self._folder.results() if self._lacks_latency(result)]
        for place, cell in enumerate(cells):
            if self._elapsed_s() >= (self._scenario.search.total or 0):
                logger.warning("search.total is used: the latency of %d cells is not measured", len(cells) - place)
                return
            state = states[cell]
            yield Visit(cell, state.visits + 1, 0.0, workers=state.workers, latency=True)

    def _elapsed_s(self) -> float:
        return self._used_s + self._clock() - self._mark

    def _lacks_latency(self, result: Result) -> bool:
        plan = self._plans.get(result.cell)
        return plan is not None and bool(remaining_latency_trials(plan, result, self._folder.trials(result.cell)))

    def _fails_again(self, cell: Cell) -> bool:
        """Return True if errors ended the last two visits of a cell: what its system lacks would spend all the time.

        Those before the run was resumed do not count: what went wrong may be put right.
        """
        own = [record for record in self._records[self._resumed :] if record.cell == cell]
        return len(own) > 1 and all(record.failed for record in own[-2:])

    def _next_visit(self) -> Visit | None:
        remaining = self.remaining_s()
        if remaining is None:
            return next_single_visit(self.states())
        system = self._records[-1].cell.system if self._records else None
        return next_visit(self.states(), remaining, precision=float(self._scenario.search.precision), system=system)


def _has_idle_cores(trials: TrialSums) -> bool:
    """Return True if this machine had idle cores in all trials of a cell: where it was full, no more can be sent."""
    return trials.busy <= MAX_BUSY_SHARE * host_info.cores()


def _refused_seconds(records: Sequence[VisitRecord]) -> float:
    """Return the longest time that a cell was allotted since its last trial without one being planned; else 0."""
    refused = 0.0
    for before, record in zip([None, *records], records, strict=False):
        made = record.trials != (before.trials if before is not None else 0)
        refused = 0.0 if made else max(refused, 0.0 if record.failed else record.allotted)
    return refused


def _mean_overheads(records: Sequence[VisitRecord]) -> dict[str, float]:
    """Return for each system the mean seconds of its last visits besides their trials."""
    overheads: dict[str, list[float]] = {}
    spent: dict[Cell, float] = {}
    for record in records:
        trial_s = record.trial_seconds - spent.get(record.cell, 0.0)
        spent[record.cell] = record.trial_seconds
        if trial_s > 0:
            overheads.setdefault(record.cell.system, []).append(max(0.0, record.seconds - trial_s))
    return {system: mean(seconds[-OVERHEAD_VISITS:]) for system, seconds in overheads.items()}
