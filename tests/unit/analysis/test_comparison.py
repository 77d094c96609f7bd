"""Two runs are called different only where they differ; bounds count as open intervals, and equal maps seldom
differ.
"""

import itertools

import pytest
from msgspec.structs import replace

from bench.analysis.comparison import compare, ratio_text
from bench.analysis.intervals import name_intervals
from bench.model.measurement import Result
from bench.search.two_counter import TwoCounter
from bench.simulation.capacity import Traits
from bench.simulation.driver import Case, run_search


def result(low, high, *, size=100, status="measured", estimate=None, interval="95 %"):
    middle = estimate or ((low * high) ** 0.5 if low and high else low or high)
    kind = interval if low and high else None
    return Result("a/b", "a", "b", size, 0.0, status, estimate_hz=middle, low_hz=low, high_hz=high, interval=kind)


def as_stored(found):
    """Return a result with the kind of its interval."""
    return name_intervals([found], calibrated=True)[0]


def word(before, after):
    return compare([before], [after])[0].word


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (result(95, 105), result(190, 210), "faster"),
        (result(95, 105), result(45, 55), "slower"),
        (result(95, 105), result(96, 106), "undecided"),
        (result(95, 105), result(200, None, status="lower-bound"), "faster"),
        (result(200, None, status="lower-bound"), result(95, 105), "slower"),
        (result(95, 105), result(50, None, status="lower-bound"), "undecided"),
        (result(100, None, status="lower-bound"), result(300, None, status="lower-bound"), "undecided"),
        (result(None, 10, status="upper-bound"), result(50, None, status="lower-bound"), "faster"),
        (result(95, 105), result(None, 50, status="upper-bound"), "slower"),
        (result(95, 105), result(None, None, status="failed"), "not compared"),
        (result(95, 105), result(None, None, status="not-measured"), "not compared"),
    ],
    ids=[
        "twice",
        "half",
        "equal",
        "above",
        "below",
        "bound below",
        "two bounds",
        "bounds apart",
        "at most",
        "failed",
        "not measured",
    ],
)
def test_the_intervals_of_a_cell_decide(before, after, expected):
    """A cell is faster or slower if its intervals exclude each other; a bound is an interval that is open on one
    side.
    """
    assert word(before, after) == expected


@pytest.mark.parametrize(
    ("speeds", "word"),
    [((), "slower"), ((1.0, 0.97), "slower"), ((0.98, 0.7), "undecided"), ((1.4, 1.0), "slower")],
    ids=["unknown", "equal", "slower machine", "faster machine"],
)
def test_a_difference_that_the_machine_may_explain_is_undecided(speeds, word):
    """A fall by 20 % on a machine whose memory is 30 % slower says nothing about the system."""
    (each,) = compare([result(98, 102)], [result(78, 82)], speeds=speeds)
    assert each.word == word
    assert (each.why != "") is (word == "undecided")


def test_a_bracket_is_not_compared():
    """It is no confidence interval, however far apart the rates are."""
    (each,) = compare([result(95, 105, interval="bracket")], [result(190, 210)])
    assert (each.word, each.why) == ("not compared", "brackets are no confidence intervals")


def test_the_ratio_has_an_interval():
    """The interval of B / A contains the ratio."""
    comparison = compare([result(98, 102)], [result(196, 204)])[0]
    assert comparison.ratio == pytest.approx(2)
    assert 1.9 < comparison.low < 2 < comparison.high < 2.1


def test_a_difference_that_is_one_of_many_counts_less():
    """A difference that decides alone does not decide among fifty equal cells."""
    pair = result(90, 110), result(118, 144)
    equal = [result(90, 110, size=size) for size in range(200, 250)]
    assert word(*pair) == "faster"
    assert compare([pair[0], *equal], [pair[1], *equal])[0].word == "undecided"


def test_a_cell_of_one_run_only_is_named():
    """A cell of only one run is listed and not compared."""
    compared = compare([result(1, 2)], [result(1, 2, size=200)])
    assert [(each.word, each.why) for each in compared] == [
        ("not compared", "only in A"),
        ("not compared", "only in B"),
    ]


def test_a_map_of_equals_seldom_shows_a_change():
    """At most 5 % of A/A maps of twelve cells show a change; `bench certify` has more, of several engines."""
    cells, comparisons, case = 12, 20, Case("a", Traits(20_000.0, warm_up=0.0), hint=1.1, budget=75.0)
    maps = [
        [
            replace(as_stored(run_search(case, cells * number + index, TwoCounter).result), message_bytes=100 + index)
            for index in range(cells)
        ]
        for number in range(comparisons + 1)
    ]
    changed = sum(any(each.word != "undecided" for each in compare(a, b)) for a, b in itertools.pairwise(maps))
    assert changed <= 0.05 * comparisons


def test_a_small_ratio_is_no_zero():
    """A thousandth has three digits, as a factor of 1000 has."""
    text = ratio_text(compare([result(99e3, 101e3)], [result(99, 101)])[0])
    assert text.startswith("x0.001 [0.0009")
