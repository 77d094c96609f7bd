"""A point of a map has a leader, a tie, or stays open; the error of the whole map is held at 5 %."""

import math
import random
from statistics import NormalDist

import pytest

from bench.analysis.intervals import name_intervals
from bench.analysis.winners import LEVEL, TIE_SHARE, decide_points
from bench.model.cell import Cell
from bench.model.measurement import Result

MAPS = 400
MAX_FALSE = 0.05 * MAPS + 2 * math.sqrt(0.05 * 0.95 * MAPS)


def result(name, low=None, high=None, *, estimate=None, status="measured", size=100, interval="95 %", reason=None):
    """Return the result of a system of that name."""
    middle = estimate or (math.sqrt(low * high) if low and high else low)
    kind = interval if low and high else None
    return Result(
        f"{name}/s", name, "s", size, 0.0, status, reason, estimate_hz=middle, low_hz=low, high_hz=high, interval=kind
    )


def bound(name, low, reason="generator"):
    return result(name, low, status="lower-bound", reason=reason)


def decide(*results, **more):
    (decision,) = decide_points(results, **more)
    return decision


def test_a_clear_lead_has_a_ratio_with_limits():
    """The limits hold the ratio of the estimates, and exclude 1."""
    decision = decide(result("a", 190, 210), result("b", 95, 105), result("c", 40, 60))
    assert (decision.kind, decision.leader, decision.runner_up) == ("leads", "a/s", "b/s")
    assert 1.7 < decision.ratio_low < 2 < decision.ratio_high < 2.3
    assert decision.candidates == ("a/s",)


def test_a_small_certain_lead_is_a_lead():
    """A lead of 10 % that is certain is named, although the systems are within 15 %."""
    assert decide(result("a", 109, 111), result("b", 99, 101)).kind == "leads"


def test_equal_systems_with_narrow_intervals_are_a_tie():
    """They are certainly within 15 % of each other; the third is certainly slower."""
    decision = decide(result("a", 97, 103), result("b", 96, 102), result("c", 40, 50))
    assert (decision.kind, decision.candidates) == ("tie", ("a/s", "b/s"))


def test_equal_systems_with_wide_intervals_are_open():
    """Neither a lead nor a tie is certain; the candidates are those that may be the best."""
    decision = decide(result("a", 80, 125), result("b", 78, 120), result("c", 10, 12))
    assert (decision.kind, decision.candidates) == ("open", ("a/s", "b/s"))
    assert decision.why == "the difference is not certain"


def test_a_lower_bound_above_all_others_leads_at_least():
    """Its ratio has no upper limit."""
    decision = decide(bound("a", 200), result("b", 95, 105))
    assert (decision.kind, decision.leader) == ("leads", "a/s")
    assert 1.7 < decision.ratio_low < 2
    assert decision.ratio_high is None


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ((bound("a", 200), bound("b", 100)), "the load generator limits both"),
        ((bound("a", 100), result("b", 190, 210)), "the load generator limits a/s"),
        ((bound("a", 100, "budget"), result("b", 190, 210)), "a/s: only a lower bound"),
        ((result("a", 190, 210, interval="bracket"), result("b", 90, 95)), "brackets are no confidence intervals"),
        ((result("a", 190, 210, interval=None), result("b", 90, 95)), "brackets are no confidence intervals"),
        ((result("a", 90, 95), result("b", 180, 190, status="unstable")), "b/s is unstable"),
        (
            (result("a", 90, 95), result("b", status="not-measured", reason="other work")),
            "b/s: not-measured (other work)",
        ),
        ((result("a", 90, 95), result("b", status="failed", reason="no valid trial")), "b/s: failed (no valid trial)"),
    ],
    ids=["two generators", "generator", "budget", "bracket", "unknown", "unstable", "not measured", "failed"],
)  # fmt: skip
def test_an_open_point_says_why(results, why):
    """Both systems may be the best."""
    decision = decide(*results)
    assert (decision.kind, decision.why, len(decision.candidates)) == ("open", why, 2)


def test_a_cell_without_a_result_keeps_its_point_open():
    """Its system may be the best."""
    decision = decide(result("a", 90, 95), result("b", 50, 52), missing=[Cell("c", "s", 100, 0.0)])
    assert (decision.kind, decision.candidates) == ("open", ("a/s", "c/s"))
    assert decision.why == "c/s has no result yet"


@pytest.mark.parametrize(
    "other",
    [result("b", status="unsupported"), result("b", status="failed", reason="the framework died 2 times")],
    ids=["unsupported", "died"],
)
def test_a_system_without_rivals_is_single(other):
    """A system that cannot do a cell, or dies, is not compared."""
    assert (decide(result("a", 90, 95), other).kind, decide(other).kind) == ("single", "none")


def test_a_system_that_died_above_a_rate_that_it_sustained_keeps_its_point_open():
    """It is no slower than that rate."""
    died = result("b", 150, None, status="failed", reason="source died 2 times: out of memory")
    decision = decide(result("a", 90, 95), died)
    assert (decision.kind, decision.candidates) == ("open", ("a/s", "b/s"))
    assert decision.why == "b/s: failed (source died 2 times: out of memory)"


def test_a_point_where_all_are_unstable_is_open():
    """Each of them has sustained a rate."""
    decision = decide(*(result(name, 90, 95, status="unstable") for name in "ab"))
    assert (decision.kind, decision.why, len(decision.candidates)) == ("open", "a/s is unstable", 2)


def test_a_point_without_a_sustained_rate_has_no_winner():
    """An upper bound is no rate."""
    assert decide(result("a", None, 3, status="upper-bound"), result("b", status="unsupported")).kind == "none"


def test_points_come_by_cost_and_size():
    """Each has one decision."""
    points = [each.point for each in decide_points([result("a", 1, 2, size=size) for size in (300, 100, 200)])]
    assert points == [(100, 0.0), (200, 0.0), (300, 0.0)]


def make_map(chance, ratios, points=6, half_width=0.15):
    """Return a map of systems whose true rates have these ratios; errors are as their intervals report."""
    reach = 1 + half_width
    results = []
    for size in range(points):
        for number, ratio in enumerate(ratios):
            seen = 1000 * ratio * math.exp(chance.gauss(0, math.log(reach) / 1.96))
            results.append(result(f"s{number}", seen / reach, seen * reach, estimate=seen, size=100 + size))
    return results


@pytest.mark.parametrize("systems", [2, 4, 6])
@pytest.mark.parametrize("half_width", [0.03, 0.15])
def test_maps_of_equal_systems_seldom_show_a_leader(systems, half_width):
    """At most 5 % of the maps do so, with their sampling error."""
    chance = random.Random(systems)
    maps = [decide_points(make_map(chance, [1.0] * systems, half_width=half_width)) for _ in range(MAPS)]
    false = sum(any(each.kind == "leads" for each in decisions) for decisions in maps)
    assert false <= MAX_FALSE


@pytest.mark.parametrize("ratios", [(1.151, 1.0), (1.151, 1.0, 1.0, 1.0), (1.151, 1.0, 0.5, 0.2)], ids=str)
def test_systems_that_differ_by_more_than_a_tie_are_seldom_called_a_tie(ratios):
    """At most 5 % of the maps call a wrong tie or a wrong leader."""
    chance = random.Random(7)
    maps = [decide_points(make_map(chance, ratios, half_width=0.06)) for _ in range(MAPS)]
    wrong = sum(
        any(each.kind == "tie" or (each.kind == "leads" and each.leader != "s0/s") for each in decisions)
        for decisions in maps
    )
    assert wrong <= MAX_FALSE


@pytest.mark.parametrize("ratios", [(1.5, 1.0), (1.5, 1.0, 0.6, 0.2)], ids=str)
def test_a_lead_of_half_is_found_nearly_always(ratios):
    """With half-widths of 15 %, at least 90 % of the points of 200 maps have the right leader."""
    chance = random.Random(3)
    decisions = [each for _ in range(200) for each in decide_points(make_map(chance, ratios))]
    assert sum(each.kind == "leads" and each.leader == "s0/s" for each in decisions) >= 0.9 * len(decisions)


def test_a_lead_allows_for_long_tails():
    """It needs 1.2 times the distance that a normal law asks for; its limits are so far from the ratio."""
    half = 0.1
    needed = 1.2 * math.sqrt(2) * half / 1.96 * NormalDist().inv_cdf(1 - (1 - TIE_SHARE) * LEVEL / 2)

    def apart(distance):
        first = 100 * math.exp(distance)
        ends = math.exp(half)
        return decide(
            result("a", first / ends, first * ends, estimate=first), result("b", 100 / ends, 100 * ends, estimate=100)
        )

    assert (apart(0.99 * needed).kind, apart(1.01 * needed).kind) == ("open", "leads")
    decision = apart(2 * needed)
    assert math.log(decision.ratio_low) == pytest.approx(needed, rel=0.01)
    assert math.log(decision.ratio_high) == pytest.approx(3 * needed, rel=0.01)


def test_the_limits_of_a_lead_hold_the_true_ratio():
    """They do so at 95 % of the points at least; the limits are those of the level of the whole map."""
    chance = random.Random(4)
    decisions = [each for _ in range(200) for each in decide_points(make_map(chance, (1.8, 1.0, 0.9)))]
    leads = [each for each in decisions if each.kind == "leads"]
    assert sum(each.ratio_low <= 1.8 <= each.ratio_high for each in leads) >= 0.95 * len(leads)


def test_results_of_older_runs_get_the_kind_of_their_interval():
    """It follows from the strategy; an interval that the budget cut short is measured, though wide."""
    old = result("a", 90, 110, interval=None)
    spent = result("a", 50, 150, status="lower-bound", reason="budget", interval=None)
    assert [each.interval for each in name_intervals([old], calibrated=True)] == ["95 %"]
    assert [each.interval for each in name_intervals([old, bound("b", 3)], calibrated=False)] == ["bracket", "bracket"]
    (wide,) = name_intervals([spent], calibrated=True)
    assert (wide.status, wide.reason, wide.precision_reached) == ("measured", None, False)
    (bracket,) = name_intervals([spent], calibrated=False)
    assert (bracket.status, bracket.interval) == ("lower-bound", "bracket")  # its estimate is its low end


def test_bounds_keep_the_error_of_the_map():
    """The end of a bound may be wrong, too: its error follows from its estimate. All systems are equal."""
    rng, false = random.Random(4), 0
    for _ in range(MAPS):
        results = []
        for size in range(30):
            middle = 100 * math.exp(rng.gauss(0, 0.2))
            results.append(
                result("a", middle * math.exp(-1.96 * 0.2), estimate=middle, status="lower-bound", size=100 + size)
            )
            other = 100 * math.exp(rng.gauss(0, 0.02))
            results.append(result("b", other * math.exp(-1.96 * 0.02), other * math.exp(1.96 * 0.02), size=100 + size))
        false += any(decision.kind == "leads" for decision in decide_points(results))
    assert false <= MAX_FALSE


@pytest.mark.parametrize("systems", [2, 6])
def test_equal_systems_are_seldom_called_slower(systems):
    """Nor is one of two called certainly slower where the other one does not lead."""
    rng, false = random.Random(5), 0
    for _ in range(MAPS):
        middles = [100 * math.exp(rng.gauss(0, 0.05)) for _ in range(systems)]
        ends = math.exp(1.96 * 0.05)
        decision = decide(*(result(f"s{n}", middle / ends, middle * ends) for n, middle in enumerate(middles)))
        false += len(decision.candidates) < systems
        assert systems > 2 or len(decision.candidates) == (1 if decision.kind == "leads" else 2)
    assert false <= MAX_FALSE
