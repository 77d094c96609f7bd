"""A system wins where it certainly is the fastest, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sample_runs import make_result, make_run

from bench.model.cell import Cell
from bench.model.measurement import Result
from reports.data.run_data import CellData, read_run_data
from reports.data.winners import describe_decision, format_ratio, rank_cells, summarize_run

CELLS = [Cell(framework, "kafka", 100, 0.0) for framework in ("a", "b", "c")]


def find_leaders(*results: Result) -> tuple[str, ...]:
    """Return the leaders among the results of the first cells."""
    (ranking,) = rank_cells([CellData(cell, result, ()) for cell, result in zip(CELLS, results, strict=False)])
    return ranking.leaders


def rated(cell: Cell, low: float | None, high: float | None, status: str = "measured") -> Result:
    """Return a result with that interval."""
    estimate = (low * high) ** 0.5 if low and high else low
    rates: dict[str, Any] = {"low_hz": low, "high_hz": high, "estimate_hz": estimate}
    return make_result(cell, status, **rates)


def test_a_system_above_all_intervals_wins() -> None:
    """Its sustained rate is above the interval of every other system."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], 75, 85)) == ("a/kafka",)


def test_overlapping_intervals_have_no_winner() -> None:
    """The higher estimate comes first, but does not win."""
    assert find_leaders(rated(CELLS[0], 90, 105), rated(CELLS[1], 100, 110)) == ("b/kafka", "a/kafka")


def test_a_lower_bound_is_never_certainly_beaten() -> None:
    """Its true rate may be higher."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], 50, None, "lower-bound")) == ("a/kafka", "b/kafka")


def test_a_lower_bound_above_all_others_wins() -> None:
    """At least that rate is enough."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], 150, None, "lower-bound")) == ("b/kafka",)


def test_an_upper_bound_that_reaches_above_the_best_is_not_beaten() -> None:
    """It may still be better."""
    assert find_leaders(rated(CELLS[0], 100, 110), rated(CELLS[1], None, 200, "upper-bound")) == ("a/kafka", "b/kafka")


def test_failed_and_unsupported_systems_are_not_in_the_ranking() -> None:
    """The one that runs is the best."""
    assert find_leaders(
        rated(CELLS[0], 1, 2), make_result(CELLS[1], "failed"), make_result(CELLS[2], "unsupported")
    ) == ("a/kafka",)


def test_nobody_wins_where_nothing_was_sustained() -> None:
    """There are no leaders."""
    assert find_leaders(make_result(CELLS[0], "failed"), rated(CELLS[1], None, 3, "upper-bound")) == ()


def test_the_summary_begins_with_the_winners(run: Path) -> None:
    """A point is open if a system without a result may turn out the best."""
    summary = summarize_run(read_run_data(run))
    assert summary.startswith(
        "python/kafka is the fastest at 3 of 6 points of the map (by at least 1.5 times); 1 is tied within 15 %, "
        "2 are open."
    )


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ((rated(CELLS[0], 190, 210), rated(CELLS[1], 95, 105)), "a/kafka leads by 1.8 to 2.2 times"),
        ((rated(CELLS[0], 98, 102), rated(CELLS[1], 98, 102)), "tie within 15 %"),
        ((rated(CELLS[0], 80, 120), rated(CELLS[1], 80, 120)), "open: a/kafka or b/kafka"),
        ((rated(CELLS[0], 80, 120), make_result(CELLS[1], "unsupported")), "only a/kafka"),
        ((make_result(CELLS[0], "unsupported"),), "no winner"),
    ],
    ids=["leads", "tie", "open", "single", "none"],
)
def test_a_decision_is_told_in_a_few_words(results: tuple[Result, ...], text: str) -> None:
    """It names who leads and by how much, or who may."""
    (ranking,) = rank_cells([CellData(cell, result, ()) for cell, result in zip(CELLS, results, strict=False)])
    assert describe_decision(ranking.decision) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.043, 1.111, "1.04 to 1.12 times"),
        (1.44, 1.86, "1.4 to 1.9 times"),
        (144.9, None, "at least 144 times"),
        (1.5, 12.31, "1.5 to 13 times"),
        (1.002, 1.31, "up to 1.4 times"),
        (1.002, None, "an unknown factor"),
    ],
    ids=["small", "usual", "at least", "wide", "from nearly nothing", "unknown"],
)
def test_the_limits_of_a_ratio_are_rounded_outwards(low: float, high: float | None, text: str) -> None:
    """The text claims no more than the limits."""
    assert format_ratio(low, high) == text


@pytest.mark.parametrize(
    ("reason", "complete"),
    [
        ("no valid trial: other work took 30% of this machine", False),
        ("kafka at 10.0.0.1:9092: no connection", False),
        ("impossible: 300 /s sustained, but theory allows 200 /s (cpu)", False),
        ("the framework died 2 times: out of memory", True),
    ],
)
def test_only_a_failed_system_that_died_is_beaten(reason: str, complete: bool) -> None:
    """A cell that failed for another reason says nothing about its system."""
    leaders = find_leaders(rated(CELLS[0], 97, 103), make_result(CELLS[1], "failed", reason=reason))
    assert leaders == (("a/kafka",) if complete else ("a/kafka", "b/kafka"))


def test_points_without_every_answer_are_not_counted_as_won(tmp_path: Path) -> None:
    """The summary counts the points at which a system wins, and those that are open."""
    run_data = read_run_data(make_run(tmp_path / "run", unfinished=()))
    point = (run_data.sizes[0], run_data.costs[0])
    cells = tuple(
        replace(cell_data, result=make_result(cell_data.cell, "failed", reason="no valid trial: generator"))
        if (cell_data.cell.message_bytes, cell_data.cell.cpu_seconds) == point
        and cell_data.cell.system == run_data.systems[0]
        else cell_data
        for cell_data in run_data.cells
    )
    summary = summarize_run(replace(run_data, cells=cells))
    assert "at all" not in summary
    assert "open" in summary


@pytest.mark.parametrize(
    ("high", "leaders"),
    [(44.0, ("a/kafka",)), (60.0, ("a/kafka", "b/kafka")), (900.0, ("a/kafka", "b/kafka"))],
)
def test_an_unstable_cell_wins_nothing(high: float, leaders: tuple[str, ...]) -> None:
    """It may be as good as the best if twice the end of its interval reaches the best rate; alone its point is open."""
    unstable = make_result(CELLS[1], "unstable", estimate_hz=0.9 * high, low_hz=0.8 * high, high_hz=high)
    assert find_leaders(rated(CELLS[0], 97, 103), unstable) == leaders
    assert find_leaders(unstable) == ("b/kafka",)
