"""The time of a map goes first to every cell, then where it changes most of what the map says."""

import math
from typing import Any

import pytest
from msgspec.structs import replace
from sample_runs import QUICK

from bench.config.scenario import LatencyTrials, Search
from bench.model.cell import Cell
from bench.model.measurement import Result
from bench.search.map_budget import (
    FIRST_SHARE,
    MAX_VISITS_WITHOUT_INTERVAL,
    MIN_VISIT_S,
    CellState,
    Visit,
    next_single_visit,
    next_visit,
    total_warning,
)
from bench.units import Seconds, Share

A, B = Cell("a", "memory", 100, 0.0), Cell("b", "memory", 100, 0.0)
LARGE_A, LARGE_B = replace(A, message_bytes=10_000), replace(B, message_bytes=10_000)
CELLS = (A, LARGE_A, B, LARGE_B)
PRECISION = 0.05


def result_of(cell: Cell, low: float | None, high: float | None, status: str = "measured", **changes: Any) -> Result:
    """Return a result with an interval; its estimate is the interval's middle in ln(rate)."""
    estimate = math.sqrt(low * high) if low and high else low
    fields = {"estimate_hz": estimate, "low_hz": low, "high_hz": high} | changes
    return Result(cell.system, cell.framework, cell.source, cell.message_bytes, 0.0, status, **fields)  # type: ignore[arg-type]  # a status as str


def visited(cell: Cell, result: Result, **changes: Any) -> CellState:
    """Return the state of a cell after a first visit of 12 s, with four trials of 2.5 s."""
    usual = {"visits": 1, "seconds": 12.0, "trials": 4, "trial_s": 10.0, "overhead_s": 2.0}
    return CellState(cell, result, **(usual | changes))


def test_every_cell_gets_an_equal_share_of_the_first_pass() -> None:
    """The first cell of a system gets two; less what a visit takes besides its trials, in the order of the run."""
    states = [CellState(cell) for cell in CELLS]
    visit = next_visit(states, 400.0, precision=PRECISION)
    assert visit == Visit(A, 1, 2 * FIRST_SHARE * 400 / 6 - 2.0)
    later = [visited(A, result_of(A, 90, 110), seconds=20.0), *states[1:]]
    assert next_visit(later, 380.0, precision=PRECISION) == Visit(LARGE_A, 1, FIRST_SHARE * 400 / 6 - 2.0)


def test_a_warm_up_stands_for_a_neighbour() -> None:
    """The first cell of a system gets no more time than the others where the warm-up tells where to begin."""
    states = [CellState(cell, warms_up=cell.system == A.system) for cell in CELLS]
    visit = next_visit(states, 400.0, precision=PRECISION)
    assert visit == Visit(A, 1, FIRST_SHARE * 400 / 5 - 2.0)


def test_time_that_a_cell_leaves_goes_to_the_later_passes() -> None:
    """The first visits of the other cells do not grow."""
    states = [visited(A, result_of(A, None, None, "unsupported"), seconds=0.0, finished=True), CellState(B)]
    visit = next_visit(states, 100.0, precision=PRECISION)
    assert visit is not None
    assert visit.seconds == FIRST_SHARE * 100 / 2 - 2.0


@pytest.mark.parametrize("remaining", [10.0, 0.0, -50.0])
def test_every_cell_is_visited_even_after_the_total(remaining: float) -> None:
    """Its visit is then the shortest one."""
    assert next_visit([CellState(A), CellState(B)], remaining, precision=PRECISION) == Visit(A, 1, 2 * MIN_VISIT_S)


def test_first_visits_share_what_slow_starts_have_left() -> None:
    """Services that took most of the total shorten the other visits."""
    states = [visited(A, result_of(A, 90, 110), seconds=80.0), CellState(B), CellState(LARGE_B)]
    visit = next_visit(states, 20.0, precision=PRECISION)
    assert visit == Visit(B, 1, 20.0 * 2 / 3 - 2.0)


def test_a_lost_result_needs_no_time() -> None:
    """Its trials are in the journal."""
    assert next_visit([CellState(A, visits=2, trials=3)], 50.0, precision=PRECISION) == Visit(A, 3, 0.0)


def test_a_cell_without_both_ends_comes_first() -> None:
    """It comes before a cell that decides an open point."""
    states = [
        visited(A, result_of(A, 50, 150), decides=True),
        visited(B, result_of(B, 100, None, "lower-bound", reason="budget")),
    ]
    assert chosen(states) == B


def test_a_cell_that_decides_an_open_point_comes_before_a_wider_one() -> None:
    """The winner is what a reader asks for."""
    states = [
        visited(A, result_of(A, 90, 115), decides=True),
        visited(B, result_of(B, 110, 130), decides=True),
        visited(LARGE_A, result_of(LARGE_A, 50, 150)),
    ]
    assert chosen(states) in (A, B)


def test_a_point_that_the_time_cannot_close_is_no_reason() -> None:
    """Two equal systems stay equal; the widest interval comes first."""
    states = [
        visited(A, result_of(A, 90, 115), decides=True),
        visited(B, result_of(B, 90, 115.1), decides=True),
        visited(LARGE_A, result_of(LARGE_A, 50, 150)),
    ]
    assert chosen(states) == LARGE_A


def test_the_widest_interval_comes_first_without_open_points() -> None:
    """The same time narrows it most."""
    states = [visited(A, result_of(A, 90, 110)), visited(B, result_of(B, 60, 140))]
    assert chosen(states) == B


def test_a_system_is_stayed_with_where_the_gain_is_similar() -> None:
    """A switch costs time; a much higher gain is worth it."""
    states = [visited(A, result_of(A, 80, 125)), visited(B, result_of(B, 79, 126))]
    assert [chosen(states, system) for system in (None, A.system)] == [B, A]
    assert chosen([states[0], visited(B, result_of(B, 20, 400))], A.system) == B


@pytest.mark.parametrize(
    "state",
    [
        visited(A, result_of(A, 60, 140), finished=True),
        visited(A, result_of(A, 98, 101, precision_reached=True)),
        visited(A, result_of(A, 100, None, "lower-bound", reason="generator", generator_hz=105.0)),
        visited(A, result_of(A, 100, None, "lower-bound", reason="budget"), visits=MAX_VISITS_WITHOUT_INTERVAL),
        visited(A, result_of(A, None, None, "unsupported"), finished=True),
    ],
    ids=["finished", "precise", "generator", "hopeless", "unsupported"],
)
def test_no_time_goes_to_a_cell_that_it_cannot_change(state: CellState) -> None:
    """The run ends before its total is used."""
    assert next_visit([state], 1000.0, precision=PRECISION) is None


def test_a_generators_limit_far_above_the_estimate_is_no_end() -> None:
    """More trials can show that the system's own limit is lower."""
    low = result_of(A, 50, None, "lower-bound", reason="generator", generator_hz=100.0)
    assert chosen([visited(A, low)]) == A


@pytest.mark.parametrize(("remaining", "seconds"), [(1000.0, 8.0), (9.0, 7.0), (4.0, None), (0.0, None)])
def test_a_later_visit_fits_into_the_total(remaining: float, seconds: float | None) -> None:
    """It takes four times its overhead; there is none where not even one trial fits."""
    visit = next_visit([visited(A, result_of(A, 60, 140))], remaining, precision=PRECISION)
    assert (visit.seconds if visit is not None else None) == seconds


def test_a_later_visit_takes_no_more_than_the_precision_needs() -> None:
    """The width shrinks with the square root of the time; a visit has time for two trials at least."""
    wide = visited(A, result_of(A, 100, 106), trial_s=100.0, trials=40)
    visit = next_visit([wide], 1000.0, precision=PRECISION)
    assert visit is not None
    assert visit.seconds == pytest.approx(100 * ((math.log(1.06) / PRECISION) ** 2 - 1))
    assert next_visit(
        [replace(wide, overhead_s=50.0, result=result_of(A, 60, 140))], 1e4, precision=PRECISION
    ) == Visit(A, 2, 100.0)
    assert next_visit([replace(wide, trials=4)], 1000.0, precision=PRECISION) == Visit(A, 2, 50.0)


def test_a_search_that_planned_nothing_in_a_visit_gets_more_time_or_none() -> None:
    """Otherwise the same visit would be made again and again."""
    state = visited(A, result_of(A, 60, 140), refused_s=10.0)
    assert next_visit([state], 100.0, precision=PRECISION) == Visit(A, 2, 20.0)
    assert next_visit([state], 21.0, precision=PRECISION) is None


def test_simulated_visits_use_the_total_and_narrow_every_interval() -> None:
    """Widths shrink with the square root of the time, and nothing is visited after the total."""
    truth = {A: 100.0, LARGE_A: 50.0, B: 120.0, LARGE_B: 10.0}
    states, remaining, visits = {cell: CellState(cell) for cell in CELLS}, 400.0, 0
    while (visit := next_visit(list(states.values()), remaining, precision=PRECISION)) is not None:
        assert remaining > 0
        assert visit.seconds is not None
        before, visits = states[visit.cell], visits + 1
        trial_s, width = before.trial_s + visit.seconds, math.sqrt(5.0 / (before.trial_s + visit.seconds)) / 2
        found = result_of(visit.cell, truth[visit.cell] * math.exp(-width), truth[visit.cell] * math.exp(width))
        spent = visit.seconds + 2.0
        states[visit.cell] = replace(
            before, result=found, visits=visit.number, seconds=before.seconds + spent, trial_s=trial_s,
            trials=before.trials + round(visit.seconds / 2.5),
        )  # fmt: skip
        remaining -= spent
    assert -1e-9 <= remaining < 10.0
    assert len(CELLS) < visits < 40
    assert sum(state.visits >= 2 for state in states.values()) >= 2


def test_without_a_total_every_cell_is_visited_once() -> None:
    """A cell that other work disturbed is visited once more at the end."""
    disturbed = result_of(A, None, None, "not-measured", reason="other work took 31 % of this machine")
    states = [visited(A, disturbed), CellState(B)]
    assert next_single_visit(states) == Visit(B, 1)
    states[1] = visited(B, result_of(B, 90, 110))
    assert next_single_visit(states) == Visit(A, 2, retry=True)
    assert next_single_visit([replace(states[0], retries=1, visits=2), states[1]]) is None


def test_a_cell_that_was_not_measured_for_another_reason_is_not_tried_again() -> None:
    """An interrupted one is resumed by the user."""
    assert next_single_visit([visited(A, result_of(A, None, None, "not-measured", reason="interrupted"))]) is None


def limited(**changes: Any) -> CellState:
    """Return the state of a cell that the load generator limits, after a finished visit with one worker."""
    result = result_of(A, 100, None, "lower-bound", reason="generator", generator_hz=105.0)
    return visited(A, result, finished=True, **changes)


def test_a_cell_at_the_limit_of_the_generator_gets_more_workers() -> None:
    """Before wide intervals become narrower; the trials that the fewer workers could not send are forgotten."""
    states = [limited(more_workers=2), visited(B, result_of(B, 60, 140))]
    assert next_visit(states, 100.0, precision=PRECISION) == Visit(A, 2, 8.0, retry=True, workers=2)
    states[0] = limited(workers=2, visits=2)
    assert next_visit(states, 100.0, precision=PRECISION) == Visit(B, 2, 8.0)


def test_more_workers_are_given_also_where_the_time_was_over() -> None:
    """A bound whose higher rates the generator could not send."""
    result = result_of(A, 100, None, "lower-bound", reason="budget", limited_by="generator")
    assert next_single_visit([visited(A, result, more_workers=2)]) == Visit(A, 2, retry=True, workers=2)


def test_without_a_total_a_cell_at_the_limit_of_the_generator_gets_more_workers() -> None:
    """When every cell has a result, and until it can have no more."""
    assert next_single_visit([limited(more_workers=2), CellState(B)]) == Visit(B, 1)
    assert next_single_visit([limited(more_workers=2)]) == Visit(A, 2, retry=True, workers=2)
    assert next_single_visit([limited(workers=2, visits=2)]) is None


def test_a_later_visit_has_as_many_workers_as_the_last_one() -> None:
    """A cell that one worker limited goes on with two."""
    states = [visited(A, result_of(A, 60, 140), workers=2, more_workers=4)]
    assert next_visit(states, 100.0, precision=PRECISION) == Visit(A, 2, 8.0, workers=2)


def test_a_disturbed_cell_begins_anew_in_a_later_pass() -> None:
    """It has no ends, so it comes before the others."""
    disturbed = result_of(A, None, None, "not-measured", reason="other work took 31 % of this machine")
    visit = next_visit([visited(A, disturbed), visited(B, result_of(B, 60, 140))], 100.0, precision=PRECISION)
    assert visit == Visit(A, 2, 8.0, retry=True)


@pytest.mark.parametrize("reason", ["other work took 31 % of this machine", "the generator stalled for 0.4 s"])
def test_a_search_that_invalid_trials_ended_begins_anew_once(reason: str) -> None:
    """It wants no further trial after these; without them it does."""
    state = visited(A, result_of(A, None, None, "not-measured", reason=reason), finished=True)
    assert next_visit([state], 100.0, precision=PRECISION) == Visit(A, 2, 8.0, retry=True)
    assert next_visit([replace(state, retries=1, visits=2)], 100.0, precision=PRECISION) is None


def test_a_cell_that_an_error_ended_is_visited_once_more_where_its_system_works() -> None:
    """A broker may have been gone for a moment; a system that never starts must not take the time of the others."""
    ended = result_of(A, None, None, "failed", reason="Kafka does not answer", trials=0)
    state = visited(A, ended, finished=True, trials=0, trial_s=0.0)
    works, never = visited(LARGE_A, result_of(LARGE_A, 98, 102), finished=True), CellState(B, result_of(B, 98, 102))
    visit = next_visit([state, works], 100.0, precision=PRECISION)
    assert visit is not None
    assert (visit.cell, visit.number, visit.retry) == (A, 2, False)
    assert next_visit([replace(state, visits=2), works], 100.0, precision=PRECISION) is None
    assert next_visit([state, replace(never, finished=True)], 100.0, precision=PRECISION) is None


def test_a_total_that_is_too_small_is_said() -> None:
    """Eight seconds a cell are the least, and what latency trials take comes on top."""

    def warning(total: float | None, *, latency: LatencyTrials | None = None) -> str | None:
        search = Search(total=None if total is None else Seconds(total))
        return total_warning(replace(QUICK, search=search, latency=latency or LatencyTrials()), 24)

    assert warning(None) is None
    assert warning(192.0) is None
    assert "give at least 192 s" in (warning(60.0) or "")
    short, long = (LatencyTrials((Share(0.5),), Seconds(seconds)) for seconds in (1, 20))
    assert "search.total: 300 s, 120 s of it for latency, for 24 cells" in (warning(300.0, latency=short) or "")
    for latency, enough in ((short, 312.0), (long, 384.0)):
        assert f"give at least {enough:g} s" in (warning(enough - 1, latency=latency) or "")
        assert warning(enough, latency=latency) is None


def chosen(states: list[CellState], system: str | None = None) -> Cell | None:
    """Return the cell that is visited next, with enough time left."""
    visit = next_visit(states, 100.0, precision=PRECISION, system=system)
    return visit.cell if visit is not None else None
