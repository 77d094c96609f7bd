"""Runs of the same cell are held together: their spread is as reported, wider, or narrower."""

import math
import random

import pytest

from bench.analysis.repeatability import agreements
from bench.model.measurement import Result


def runs(errors, sd=0.02, status="measured"):
    """One run of one cell for each error, as the logarithm of a share of 100 /s; each reports an interval of that sd."""
    found = []
    for error in errors:
        middle, reach = 100 * math.exp(error), math.exp(1.96 * sd)
        rates = {"estimate_hz": middle, "low_hz": middle / reach, "high_hz": middle * reach}
        found.append([Result("a/b", "a", "b", 100, 0.0, status, **rates)])
    return found


@pytest.mark.parametrize(
    ("spread", "word"), [(0.02, "as reported"), (0.06, "wider than reported"), (0.004, "narrower than reported")]
)
def test_a_spread_is_held_against_the_intervals(spread, word):
    """Ten runs whose estimates differ as much as, more than and less than their intervals say."""
    seeded = random.Random(5)
    (found,) = agreements(runs([seeded.gauss(0, spread) for _ in range(10)]))
    assert found.word == word
    assert found.spread == pytest.approx(spread, rel=0.5)
    assert found.promised == pytest.approx(0.02, rel=0.01)
    assert word in found.sentence()


def test_honest_intervals_are_seldom_doubted():
    """Of 400 families of five runs about one in ten is called too wide or too narrow."""
    seeded = random.Random(1)
    words = [agreements(runs([seeded.gauss(0, 0.02) for _ in range(5)]))[0].word for _ in range(400)]
    assert 0.05 < sum(word != "as reported" for word in words) / 400 < 0.16


def test_a_bound_and_two_runs_are_no_repeat():
    """A bound has no middle, and two runs have no spread."""
    assert agreements(runs([0.0, 0.01])) == []
    assert agreements(runs([0.0, 0.01, 0.02], status="lower-bound")) == []


def test_the_middle_is_common_and_held():
    """The centre lies between the estimates, and the intervals that hold it are counted."""
    (found,) = agreements(runs([-0.01, 0.0, 0.01, 0.3]))
    assert 100 < found.centre_hz < 110
    assert found.holding == 0  # the fourth is so far away that the middle is nobody's
