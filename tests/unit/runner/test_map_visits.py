"""The visits of a run follow from its folder and the clock, also after a kill."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from manual_clock import ManualClock
from msgspec.structs import replace
from sample_runs import QUICK, make_measurement, make_result, open_run_folder

from bench.config.scenario import LatencyTrials, Scenario, Search
from bench.config.site import Site
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.runner.cell_plan import plan_cell
from bench.runner.cell_search import Answer
from bench.runner.map_visits import MAX_BUSY_SHARE, MapVisits
from bench.runner.outcome import without_rate
from bench.search.map_budget import (
    AROUND_WINDOW_S,
    DEFAULT_OVERHEAD_S,
    FIRST_SHARE,
    CellState,
    Visit,
    next_single_visit,
)
from bench.storage.run_folder import RunFolder
from bench.system import host_info
from bench.units import Seconds, Share

TOTAL_S = 240.0
SCENARIO = replace(QUICK, search=Search(total=Seconds(TOTAL_S)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunFolder]:
    """Yield a new run folder, open."""
    with open_run_folder(tmp_path / "run", SCENARIO) as opened:
        yield opened


SYSTEMS = len(SCENARIO.systems)


def make_visit(
    visits: MapVisits,
    visit: Visit,
    clock: ManualClock,
    store: RunFolder,
    *,
    trials: int = 1,
    result: Result | None = None,
    busy: float = 0.0,
) -> None:
    """Make a visit of so many trials of 13 s, and 5 s besides them; it ends with a result that goes on.

    A trial uses so many cores.
    """
    allowance = visits.allowance(visit)
    before = len(store.trials(visit.cell))
    for number in range(before, before + trials):
        store.add(visit.cell, make_measurement(number, 100.0, 200.0, cpu={"seconds": 10.0, "busy": 10.0 * busy}))
        clock.now += 13.0
    clock.now += 5.0
    visits.end(visit, allowance, Answer(result or make_result(visit.cell), finished=False, budget=40.0, hint_hz=77.0))


def state_of(visits: MapVisits, cell: Cell) -> CellState:
    """Return the state of one cell."""
    return next(state for state in visits.states() if state.cell == cell)


def test_a_visit_uses_its_time_of_the_total(store: RunFolder) -> None:
    """A visit's time includes trials and everything between them."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    assert visits.remaining_s() == TOTAL_S
    make_visit(visits, next(iter(visits)), clock, store)
    assert visits.remaining_s() == TOTAL_S - 18.0
    state = state_of(visits, visits.cells[0])
    assert (state.visits, state.seconds, state.trials, state.trial_s, state.overhead_s) == (1, 18.0, 1, 13.0, 5.0)


def test_a_resumed_run_has_what_was_left(store: RunFolder) -> None:
    """Idle time between two harnesses counts nothing; trials of a visit without a record count."""
    clock = ManualClock()
    before = MapVisits(SCENARIO, store, clock=clock)
    make_visit(before, next(iter(before)), clock, store)
    store.add(before.cells[1], make_measurement(0, 100.0, 200.0))
    clock.now = 5000.0
    visits = MapVisits(SCENARIO, store, clock=clock)
    assert visits.remaining_s() == TOTAL_S - 18.0 - 13.0
    second = next(iter(visits))
    assert (second.cell, second.number) == (visits.cells[1], 1)
    make_visit(visits, second, clock, store, trials=0)
    assert MapVisits(SCENARIO, store, clock=clock).remaining_s() == TOTAL_S - 18.0 - 13.0 - 5.0


def test_a_cell_that_was_unsupported_gets_its_first_visit_in_a_resumed_run(store: RunFolder) -> None:
    """The time of the visit that it could not use counts, and a total that is used does not cut the new one."""
    clock = ManualClock()
    before = MapVisits(SCENARIO, store, clock=clock)
    first = next(iter(before))
    allowance = before.allowance(first)
    clock.now += TOTAL_S
    before.end(first, allowance, Answer(without_rate(first.cell, "unsupported", "it is not installed")))
    store.close()
    with RunFolder(store.folder).open(SCENARIO, Site(), {}) as resumed:
        visits = MapVisits(SCENARIO, resumed, clock=clock)
        again = next(iter(visits))
        assert (again.cell, again.number, visits.remaining_s()) == (first.cell, 1, 0.0)
        assert visits.allowance(again).deadline == float("inf")


def test_an_overhead_is_that_of_the_system(store: RunFolder) -> None:
    """A system that was not visited has a usual one; a visit without a trial tells nothing of it."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    planned = iter(visits)
    make_visit(visits, next(planned), clock, store)
    clock.now += 10.0
    make_visit(visits, next(planned), clock, store, trials=0)
    overheads = {state.cell.system: state.overhead_s for state in visits.states()}
    assert overheads[visits.cells[0].system] == 5.0
    assert overheads[visits.cells[-1].system] == DEFAULT_OVERHEAD_S


def test_a_visit_without_a_trial_is_remembered_until_there_is_one(store: RunFolder) -> None:
    """The search needs more time than it was allotted."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    visit = next(iter(visits))
    make_visit(visits, visit, clock, store, trials=0)
    assert state_of(visits, visit.cell).refused_s == visit.seconds
    make_visit(visits, Visit(visit.cell, 2, 20.0), clock, store)
    assert state_of(visits, visit.cell).refused_s == 0.0


def test_a_first_visit_is_not_cut_by_the_total_and_a_later_one_is(store: RunFolder) -> None:
    """Every cell gets a first one; the hint of the first visit is kept."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    first = next(iter(visits))
    allowance = visits.allowance(first)
    assert (allowance.budget, allowance.first, allowance.deadline) == (None, True, float("inf"))
    assert allowance.seconds == pytest.approx(2 * FIRST_SHARE * TOTAL_S / (24 + SYSTEMS) - DEFAULT_OVERHEAD_S, abs=2.0)
    make_visit(visits, first, clock, store)
    later = visits.allowance(Visit(first.cell, 2, 20.0))
    assert (later.first, later.hint_hz) == (False, 77.0)
    assert later.deadline - clock.now == visits.remaining_s()


def test_a_retry_ignores_the_trials_that_there_are(store: RunFolder) -> None:
    """Later visits go on ignoring them."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    cell = visits.cells[0]
    make_visit(visits, Visit(cell, 1, 20.0), clock, store, trials=2)
    retry = Visit(cell, 2, 20.0, retry=True)
    assert visits.allowance(retry).ignored == 2
    make_visit(visits, retry, clock, store)
    assert visits.allowance(Visit(cell, 3, 20.0)).ignored == 2
    assert state_of(visits, cell).retries == 1


def test_a_cell_that_the_generator_limits_may_have_more_workers(store: RunFolder) -> None:
    """While this machine has idle cores and the scenario does not set their number; a resumed run goes on with them."""
    most = MAX_BUSY_SHARE * host_info.cores()
    cell, clock = SCENARIO.cells()[0], ManualClock()
    plans = [dataclasses.replace(plan_cell(cell, SCENARIO, Site(), 4), max_workers=4)]
    visits = MapVisits(SCENARIO, store, plans, clock=clock)
    limited = make_result(cell, "lower-bound", reason="generator", high_hz=None)
    make_visit(visits, Visit(cell), clock, store, result=limited, busy=0.97 * most)
    assert (state_of(visits, cell).workers, state_of(visits, cell).more_workers) == (1, 2)
    more = next_single_visit([state_of(visits, cell)])
    assert more == Visit(cell, 2, retry=True, workers=2)
    make_visit(visits, more, clock, store, result=limited, busy=0.5 * most)
    resumed = state_of(MapVisits(SCENARIO, store, plans, clock=clock), cell)
    assert (resumed.workers, resumed.more_workers) == (2, 4)
    make_visit(visits, Visit(cell, 3, workers=2), clock, store, result=limited, busy=1.03 * most)
    assert state_of(visits, cell).more_workers is None


def test_a_pass_lasts_half_of_the_time_that_is_left(store: RunFolder) -> None:
    """The first one ends when every cell has a result; after the end of the total there is no other one."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    ends = []
    for cell in visits.cells:
        make_visit(visits, Visit(cell), clock, store, trials=0)
        ends.append(visits.ends_pass())
    assert ends == [False] * 23 + [True]
    left = visits.remaining_s()
    assert left == TOTAL_S - 24 * 5.0
    clock.now += 0.4 * left
    assert not visits.ends_pass()
    clock.now += 0.2 * left
    assert [visits.ends_pass(), visits.ends_pass()] == [True, False]
    clock.now += left
    assert not visits.ends_pass()


def test_a_result_with_other_inputs_opens_its_search_again(store: RunFolder) -> None:
    """Until its next visit has ended, in which the search may want no trial."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    visit = next(iter(visits))
    visits.end(visit, visits.allowance(visit), Answer(make_result(visit.cell)))
    assert state_of(visits, visit.cell).finished
    visits.go_on_with([visit.cell])
    assert not state_of(visits, visit.cell).finished
    again = Visit(visit.cell, 2, 10.0)
    visits.end(again, visits.allowance(again), Answer(make_result(visit.cell)))
    assert state_of(visits, visit.cell).finished


def test_latency_trials_have_their_part_of_the_total(store: RunFolder) -> None:
    """They get half of it at most, on last visits of the cells with a confirmed rate."""
    latency = LatencyTrials((Share(0.5),), Seconds(2))
    assert type(MapVisits(SCENARIO, store).total_s) is float  # status.json has it, and takes no Seconds
    reserved = len(SCENARIO.cells()) * (2.0 + AROUND_WINDOW_S + DEFAULT_OVERHEAD_S)
    assert MapVisits(replace(SCENARIO, latency=latency), store).total_s == TOTAL_S - min(reserved, TOTAL_S / 2)
    assert MapVisits(replace(SCENARIO, latency=replace(latency, window=Seconds(60))), store).total_s == TOTAL_S / 2


def test_latency_trials_end_with_the_total(store: RunFolder, caplog: pytest.LogCaptureFixture) -> None:
    """The cells that are left have no latency, and a line says how many they are."""
    clock, scenario = ManualClock(), replace(SCENARIO, latency=LatencyTrials((Share(0.5),), Seconds(60)))
    plans = [plan_cell(cell, scenario, Site(), 2) for cell in scenario.cells()]
    visits = MapVisits(scenario, store, plans, clock=clock)
    for visit in visits:
        if visit.latency:
            break
        clock.now += 18.0
        result = replace(make_result(visit.cell), confirmed_hz=100.0, precision_reached=True)
        visits.end(visit, visits.allowance(visit), Answer(result))
    clock.now += TOTAL_S
    assert [each for each in visits if each.latency] == []
    assert f"the latency of {len(SCENARIO.cells())} cells is not measured" in caplog.text


def test_the_start_of_a_visit_tells_where_the_run_is(store: RunFolder) -> None:
    """The event has the cell's place in the order, the number of cells with a result, and the time that is left."""
    clock = ManualClock()
    visits = MapVisits(SCENARIO, store, clock=clock)
    planned = iter(visits)
    make_visit(visits, next(planned), clock, store)
    started = visits.start_event(next(planned))
    assert (started.number, started.total, started.visit, started.done) == (2, 24, 1, 1)
    assert (started.left_s, started.total_s) == (TOTAL_S - 18.0, TOTAL_S)


def test_a_run_without_a_total_visits_each_cell_for_its_budget(store: RunFolder) -> None:
    """Its latency trials are part of the visit."""
    scenario: Scenario = replace(SCENARIO, search=Search(budget=Seconds(30)))
    visits = MapVisits(scenario, store)
    visit = next(iter(visits))
    allowance = visits.allowance(visit)
    assert (visit.seconds, allowance.budget, allowance.latency) == (None, 30.0, True)
    assert visits.start_event(visit).left_s is None
