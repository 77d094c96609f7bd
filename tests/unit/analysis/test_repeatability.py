"""The spread between runs of the same cell is called as promised, wider, or narrower."""

import math
import random

import pytest
from msgspec.structs import replace

from bench.analysis.repeatability import agreements, overall_sentence, run_factors
from bench.model.measurement import Result


def runs(errors, sd=0.02, status="measured", interval="95 %"):
    """Return one run of one cell for each error in ln(rate) from 100 /s; each reports a 95 % interval of that sd."""
    results = []
    for error in errors:
        middle, reach = 100 * math.exp(error), math.exp(1.96 * sd)
        rates = {"estimate_hz": middle, "low_hz": middle / reach, "high_hz": middle * reach, "interval": interval}
        results.append([Result("a/b", "a", "b", 100, 0.0, status, **rates)])
    return results


@pytest.mark.parametrize(
    ("spread", "word"), [(0.02, "as promised"), (0.06, "wider than promised"), (0.004, "narrower than promised")]
)
def test_a_spread_is_compared_with_the_intervals(spread, word):
    """Ten runs that spread as much as, more than and less than their intervals report are called so."""
    seeded = random.Random(5)
    (agreement,) = agreements(runs([seeded.gauss(0, spread) for _ in range(10)]))
    assert agreement.word == word
    assert agreement.spread == pytest.approx(spread, rel=0.5)
    assert agreement.promised == pytest.approx(0.02, rel=0.01)
    assert word in agreement.sentence()


def test_correct_intervals_are_seldom_rejected():
    """About one in ten of 400 families of five runs is called too wide or too narrow: 5 % on each side."""
    seeded = random.Random(1)
    words = [agreements(runs([seeded.gauss(0, 0.02) for _ in range(5)]))[0].word for _ in range(400)]
    assert 0.05 < sum(word != "as promised" for word in words) / 400 < 0.16


def test_bounds_and_two_runs_are_not_tested():
    """A bound has no estimate, and two runs are too few."""
    assert agreements(runs([0.0, 0.01])) == []
    assert agreements(runs([0.0, 0.01, 0.02], status="lower-bound")) == []


def test_brackets_are_not_tested():
    """A bracket promises no spread."""
    assert agreements(runs([0.0, 0.01, 0.02], interval="bracket")) == []
    assert overall_sentence([]) == ""


@pytest.mark.parametrize(("spread", "word"), [(0.02, "as promised"), (0.04, "wider than promised")])
def test_all_cells_together_have_one_decision(spread, word):
    """Twenty cells of five runs: the sum of their Q decides."""
    seeded = random.Random(2)
    agreed = [agreements(runs([seeded.gauss(0, spread) for _ in range(5)]))[0] for _ in range(20)]
    assert f"Over 20 cells together the spread between runs is {word}" in overall_sentence(agreed)


def test_the_centre_lies_between_the_estimates():
    """The intervals that contain the centre are counted."""
    (agreement,) = agreements(runs([-0.01, 0.0, 0.01, 0.3]))
    assert 100 < agreement.centre_hz < 110
    assert agreement.holding == 0  # the fourth is so far away that no interval contains the centre


def map_of(factors, sd=0.02, cells=12, seed=3):
    """Return a run of 12 cells for each factor by which its machine is faster; errors are as the intervals report."""
    seeded = random.Random(seed)
    maps = [[] for _ in factors]
    for size in range(cells):
        for of_run, (result,) in zip(
            maps, runs([math.log(factor) + seeded.gauss(0, sd) for factor in factors], sd), strict=True
        ):
            of_run.append(replace(result, message_bytes=100 + size))
    return maps


def test_a_machine_that_is_slower_in_one_run_is_told_from_wrong_intervals():
    """All cells together are wider than promised; without the run's factor they are as promised."""
    maps = map_of([1.0, 0.85, 1.0, 1.1])
    assert "is wider than promised" in overall_sentence(agreements(maps))
    found = run_factors(maps)
    assert [factor / found.factors[0] for factor in found.factors] == pytest.approx([1.0, 0.85, 1.0, 1.1], rel=0.03)
    assert "without them the spread is as promised" in found.sentence()


def test_correct_maps_are_seldom_rejected():
    """About one in ten of 200 sets of four equal maps is called too wide or too narrow."""
    words = [run_factors(map_of([1.0] * 4, seed=seed)).sentence() for seed in range(200)]
    assert 0.04 < sum("as promised" not in word for word in words) / 200 < 0.17


def test_two_runs_or_one_cell_have_no_factors():
    """The factor of a run cannot be told from the error of its only cell."""
    assert run_factors(map_of([1.0, 1.0])) is None
    assert run_factors(map_of([1.0, 1.0, 1.0], cells=1)) is None
    assert run_factors([]) is None
