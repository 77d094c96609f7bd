"""The bisection finds a known capacity, or gives the reason why it did not, and always ends."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bench.analysis.verdict import Verdict
from bench.config.scenario import Search, Timing
from bench.model.cell import Cell
from bench.model.measurement import Measurement
from bench.search.bisection import Bisection
from bench.search.problem import SearchProblem
from bench.units import Rate, Seconds, Share

CELL = Cell("capacity", "memory", 100, 0.0)


def problem(precision=0.05, budget=3000.0, highest=1e6, bound=None, hint=None):
    search = Search(precision=Share(precision), budget=Seconds(budget), highest=Rate(highest))
    return SearchProblem(CELL, search, Timing(), batch_interval=0.0, bound_hz=bound, hint_hz=hint)


def trial_of(planned, verdict, **changes):
    seconds = planned.settle + planned.window
    count = round(planned.rate * seconds)
    measurement = Measurement(
        planned, "", "complete", 0.0, seconds, count, count, 0, count, 0, 0, 0, 0,
        drained=True, late=0.0, blocked=0.0, cpu_requested_s=0.0, cpu_used_s=0.0,
    )  # fmt: skip
    return replace(measurement, **changes), verdict


def run_until_end(search, judge):
    """Return the search after its last trial; `judge` returns the measurement and verdict of a planned trial."""
    for _ in range(200):
        planned = search.next_trial()
        if planned is None:
            return search
        search = search.after(*judge(planned))
    raise AssertionError("the search did not end within 200 trials")


def system(capacity, noise=0.0, seed=1):
    """Return a judge for a system of that capacity, which varies by up to `noise` from trial to trial."""
    seeded = random.Random(seed)

    def judge(planned):
        today = capacity * (1 + seeded.uniform(-noise, noise))
        if planned.rate <= today:
            return trial_of(planned, Verdict("sustained"))
        return trial_of(planned, Verdict("overloaded", "backlog grew", 1 - today / planned.rate))

    return judge


@given(
    capacity=st.floats(0.5, 900_000),
    precision=st.sampled_from([0.02, 0.05, 0.25]),
    hint=st.none() | st.floats(0.2, 1e6),
)
def test_the_capacity_lies_in_the_interval(capacity, precision, hint):
    """For any capacity and hint the cell is measured, confirmed, and its interval as narrow as requested."""
    result = run_until_end(Bisection(problem(precision, budget=1e6, hint=hint)), system(capacity)).result()
    assert result.status == "measured"
    assert result.low_hz <= capacity <= result.high_hz
    assert result.high_hz / result.low_hz <= 1 + precision + 1e-6
    assert result.confirmed_hz == result.low_hz


@given(capacity=st.floats(1, 500_000), seed=st.integers(0, 1000))
def test_the_result_of_a_noisy_system_is_near_its_capacity(capacity, seed):
    """Estimates that are wrong by two percent do not mislead the search."""
    result = run_until_end(Bisection(problem(0.1, budget=1e6)), system(capacity, noise=0.02, seed=seed)).result()
    assert result.status in ("measured", "unstable")
    assert result.low_hz == pytest.approx(capacity, rel=0.2)


def test_a_good_hint_saves_trials():
    """A search with a hint near the capacity needs fewer trials than one with a distant hint."""
    near, far = (run_until_end(Bisection(problem(hint=hint)), system(5000)) for hint in (4900, 40))
    assert len(near.steps) < len(far.steps)


def test_a_generator_that_is_the_limit_gives_a_lower_bound():
    """A generator that is late above 8,000/s gives a lower bound without an upper end."""

    def judge(planned):
        if planned.rate > 8000:
            return trial_of(planned, Verdict("invalid", "generator"), late=1.0)
        return trial_of(planned, Verdict("sustained"))

    result = run_until_end(Bisection(problem()), judge).result()
    assert (result.status, result.reason, result.limited_by) == ("lower-bound", "generator", "generator")
    assert 8000 / 1.06 <= result.low_hz <= 8000
    assert result.high_hz is None


def test_a_system_that_keeps_up_at_the_highest_rate_is_a_lower_bound():
    """The result is a lower bound at the highest rate of the range."""
    result = run_until_end(Bisection(problem(highest=1000)), system(1e9)).result()
    assert (result.status, result.low_hz) == ("lower-bound", 1000)


def test_a_system_that_fails_at_the_lowest_rate_is_an_upper_bound():
    """The result has no estimate, rather than zero."""
    result = run_until_end(Bisection(problem()), system(0.001)).result()
    assert (result.status, result.estimate_hz, result.confirmed_hz) == ("upper-bound", None, None)


def test_a_spent_budget_is_a_lower_bound():
    """The result is the highest sustained rate so far."""
    result = run_until_end(Bisection(problem(budget=50)), system(700_000)).result()
    assert (result.status, result.reason) == ("lower-bound", "budget")


def test_a_framework_that_dies_again_has_failed():
    """The cell fails at the second death."""

    def judge(planned):
        return trial_of(planned, Verdict("overloaded", "died"), ended="framework died", note="killed")

    result = run_until_end(Bisection(problem()), judge).result()
    assert result.status == "failed"
    assert "killed" in result.reason
    assert result.low_hz is None


def test_a_rate_that_was_sustained_before_two_deaths_is_kept():
    """The cell has failed, and the system does at least so much."""

    def judge(planned):
        if planned.rate < 50_000:
            return trial_of(planned, Verdict("sustained", ""))
        return trial_of(planned, Verdict("overloaded", "died"), ended="source died", note="killed")

    result = run_until_end(Bisection(problem()), judge).result()
    assert (result.status, result.reason) == ("failed", "source died 2 times: killed")
    assert 0 < result.low_hz < 50_000


def test_invalid_trials_do_not_go_on_for_ever():
    """Five invalid trials in a row end the cell."""
    result = run_until_end(
        Bisection(problem()), lambda planned: trial_of(planned, Verdict("invalid", "the load died"))
    ).result()
    assert (result.status, result.reason) == ("failed", "no valid trial: the load died")


def test_a_cell_beside_other_work_is_not_measured():
    """It can be visited again; nothing is wrong with the system."""
    verdict = Verdict("invalid", "other work took 20% of a machine", cause="other work")
    result = run_until_end(Bisection(problem()), lambda planned: trial_of(planned, verdict)).result()
    assert (result.status, result.reason) == ("not-measured", "other work took 20% of a machine")


def test_a_system_that_contradicts_itself_is_unstable():
    """A system that repeatedly sustains rates above overloaded ones is unstable."""
    seeded = random.Random(3)

    def judge(planned):
        kept_up = seeded.random() < 0.5
        return trial_of(planned, Verdict("sustained") if kept_up else Verdict("overloaded", "lost", 0.0))

    statuses = {run_until_end(Bisection(problem(budget=1e5)), judge).result().status for _ in range(20)}
    assert "unstable" in statuses


def test_nothing_far_above_the_bound_is_tried():
    """No trial is made more than 10 % above a hard bound."""
    search = run_until_end(Bisection(problem(bound=20.0)), system(19.0))
    assert max(step.measurement.planned.rate for step in search.steps) <= 22.0 + 1e-9


@given(capacity=st.floats(1, 500_000), cut=st.integers(0, 12))
def test_the_same_steps_give_the_same_plan(capacity, cut):
    """A search that receives the trials of an interrupted one plans the same next trial."""
    whole = run_until_end(Bisection(problem(budget=1e6)), system(capacity))
    again = Bisection(problem(budget=1e6))
    for step in whole.steps[:cut]:
        again = again.after(step.measurement, step.verdict)
    planned = again.next_trial()
    assert planned == (whole.steps[cut].measurement.planned if cut < len(whole.steps) else None)
