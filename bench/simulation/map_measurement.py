"""One measurement of a map of simulated cells: its cells one after the other, or in the passes of a total.

What a run does with real systems (bench.runner), without its folder: each cell has a hint from the cells of its system
that were measured before it, and results are computed again with what all cells have shown. Nothing disturbs these
cells, so that none is tried again, and the generator limits none.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.search.map_budget import DEFAULT_OVERHEAD_S, CellState, Visit, decisive_cells, ends_pass, next_visit
from bench.search.parameters import SearchParameters
from bench.search.priors import (
    cell_order,
    fixed_share_of,
    hint_of,
    noise_of,
    takes_evidence_of_others,
    warm_ups_of,
)
from bench.search.trial_planning import shortest_search
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case, JudgedTrials, StrategyFactory, resume_search, run_search

PRECISION = 0.1


def measure_each(
    systems: Mapping[Cell, Traits], budget: float, seed: int, strategy: StrategyFactory
) -> dict[Cell, Result]:
    """Return the results of cells of which each has so many seconds, in the order of a run."""
    measured = _MeasuredMap(systems, seed, strategy)
    for cell in measured.cells:
        measured.visit(cell, budget)
    measured.update()
    return measured.results


def measure_in_passes(
    systems: Mapping[Cell, Traits], total: float, seed: int, strategy: StrategyFactory
) -> dict[Cell, Result]:
    """Return the results of cells that share so many seconds, in the order of a run.

    The visits are those of a run with `search.total`: which cell goes on, and when it ends, follows from the results.
    """
    measured = _MeasuredMap(systems, seed, strategy)
    last, left, after_pass = None, total, math.inf
    while (visit := next_visit(measured.states(), left, precision=PRECISION, system=last)) is not None:
        last = visit.cell.system
        left -= measured.visit(visit.cell, visit.seconds or 0.0, possible=total, at_most=_time_left(visit, left))
        if ends_pass(left, after_pass, every=len(measured.results) == len(measured.cells)):
            after_pass = left
            measured.update()
    measured.update()
    return measured.results


def _time_left(visit: Visit, left: float) -> float:
    return math.inf if visit.number == 1 else left - DEFAULT_OVERHEAD_S


class _MeasuredMap:
    """The cells of a map with their trials so far, and the states that the next visit follows from."""

    def __init__(self, systems: Mapping[Cell, Traits], seed: int, strategy: StrategyFactory) -> None:
        self.cells = cell_order(list(systems))
        self.results: dict[Cell, Result] = {}
        self._systems, self._seed, self._strategy = systems, seed, strategy
        self._cases: dict[Cell, Case] = {}
        """with the hint of the first visit and the budget of all trials so far"""
        self._trials: dict[Cell, JudgedTrials] = {}
        self._states: dict[Cell, CellState] = {}
        for cell in self.cells:
            least = shortest_search(systems[cell].batch_interval, SearchParameters())
            self._states[cell] = CellState(cell, min_s=least)
        self._ages: dict[str, float] = defaultdict(float)

    def states(self) -> list[CellState]:
        """Return the states of all cells in the order of the run."""
        decisive = decisive_cells(list(self.results.values()))
        return [replace(state, decides=cell in decisive) for cell, state in self._states.items()]

    def visit(self, cell: Cell, seconds: float, *, possible: float = 0.0, at_most: float = math.inf) -> float:
        """Let the search of a cell go on; return how long that took.

        Args:
            cell: The cell.
            seconds: For its trials.
            possible: The most that further visits may give: a search that wants no trial even then is finished. 0
                where there is no further visit.
            at_most: Seconds after which no trial begins.
        """
        state, trials = self._states[cell], self._trials.setdefault(cell, [])
        before = len(trials)
        case = self._inform(self._cases.get(cell) or self._first_case(cell))
        self._cases[cell] = case = replace(case, budget=state.trial_s + seconds, age=self._ages[cell.system])
        seed = 1000 * self._seed + self.cells.index(cell) + 10**9 * state.visits
        outcome = run_search(case, seed, self._strategy, trials, at_most=at_most)
        took, tried = outcome.seconds + DEFAULT_OVERHEAD_S, sum(measurement.seconds for measurement, _ in trials)
        self.results[cell] = result = outcome.result
        self._ages[cell.system] += outcome.seconds
        longer = replace(case, budget=case.budget + possible)
        self._states[cell] = replace(
            state,
            result=result,
            visits=state.visits + 1,
            seconds=state.seconds + took,
            trials=len(trials),
            trial_s=tried,
            finished=not possible or bool(result.precision_reached) or self._wants_nothing(longer, trials),
            refused_s=max(state.refused_s, seconds) if len(trials) == before else 0.0,
        )
        return took

    def update(self) -> None:
        """Compute the results again with what all cells have shown; searches whose inputs change are open again."""
        for cell, result in list(self.results.items()):
            case = self._inform(self._cases[cell])
            if case == self._cases[cell] or not takes_evidence_of_others(result):
                continue
            self._cases[cell] = case
            self.results[cell] = updated = resume_search(case, self._strategy, self._trials[cell]).result()
            self._states[cell] = replace(self._states[cell], result=updated, finished=False)

    def _first_case(self, cell: Cell) -> Case:
        traits = self._systems[cell]
        hint = hint_of(cell, list(self.results.values()))
        share = None if hint is None else hint / traits.truth
        return Case(cell.name, traits, 0.1, 1e6, precision=PRECISION, cell=cell, hint=share, cold=traits.warm_up > 0)

    def _inform(self, case: Case) -> Case:
        """Return a case with what the results of other cells show."""
        others: Sequence[Result] = list(self.results.values())
        warm_ups = warm_ups_of(case.cell, others) if case.cold else ()
        noise, fixed_share = noise_of(case.cell, others), fixed_share_of(case.cell, others)
        return replace(case, noise=noise, fixed_share=fixed_share, warm_ups=warm_ups)

    def _wants_nothing(self, case: Case, trials: JudgedTrials) -> bool:
        return resume_search(case, self._strategy, trials).next_trial() is None
