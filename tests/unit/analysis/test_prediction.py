"""A prediction follows from the shares of the critical path by the models that its module states."""

import dataclasses
import math

import pytest
from msgspec.structs import replace
from sample_runs import make_measurement

from bench.analysis.activity_graph.events import make_events
from bench.analysis.activity_graph.participation import compute_participation
from bench.analysis.activity_graph.windows import Windows
from bench.analysis.prediction import (
    Factor,
    Rates,
    fixed_shares,
    judge_prediction,
    predict_equal_parts,
    predict_longer_batches,
    predict_more_workers,
    predict_rates,
    rates_of,
    spare_factor,
)
from bench.model.measurement import Batches, Result
from bench.model.trace import Span, TraceMessage

S = 10**9


def batches_of(fixed: float, interval: float = 1.0, count: int = 4):
    """Return the participation and the measurement of batches that plan for `fixed` seconds, then work to their end."""
    spans = []
    for number in range(count):
        begin, middle, end = (round(each * S) for each in (number, number + fixed, number + interval))
        spans += [Span("driver", "planning", begin, middle, "plan"), Span("driver", "processing", middle, end, "work")]
    participation = compute_participation(make_events(spans, []), Windows(0, S, count))
    ends = [float(number + 1) for number in range(count)]
    batches = Batches([end - 1 for end in ends], ends, [100] * count)
    return participation, make_measurement(0, 90.0, 80.0, batch=interval, batches=batches)


def test_a_longer_interval_has_the_fixed_part_less_often():
    """(1 - o/2T) / (1 - o/T) with o = 0.4 T is 0.8 / 0.6."""
    factor = predict_longer_batches(fixed_shares(*batches_of(0.4)), 2)
    assert (factor.low, factor.estimate, factor.high) == pytest.approx((0.8 / 0.6,) * 3)


@pytest.mark.parametrize("shift", [0.0, 0.5, 0.9])
def test_the_time_between_batches_does_not_depend_on_where_the_window_begins(shift):
    """Batches of 3 s in a window of 10 s: three or four of them end in it."""
    participation, measurement = batches_of(0.4)
    ends = [3.0 * number + shift for number in range(8)]
    batches = Batches([end - 3 for end in ends], ends, [100] * len(ends))
    participation = dataclasses.replace(participation, windows=Windows(0, 10 * S // 4, 4))
    factor = predict_longer_batches(
        fixed_shares(participation, replace(measurement, batches=batches, batch_interval=3.0)), 2
    )
    assert factor.estimate == pytest.approx(0.8 / 0.6)


def test_what_a_search_found_of_batches_counts_more_than_the_trace():
    """Of the fixed part 0.5, which a task has too, the trace shows 0.3; the rate was 1.44 times as high."""
    factor = predict_longer_batches(fixed_shares(*batches_of(0.3), 0.5), 2)
    assert factor.estimate == pytest.approx(0.75 / 0.5)
    assert (factor.low, factor.high) == pytest.approx((0.825 / 0.65, 0.675 / 0.35))


@pytest.mark.parametrize(
    ("estimate", "growing", "share"),
    [(810.0, 1620.0, 0.5), (810.0, None, None), (810.0, 810.0, None), (None, None, None)],
    ids=["known", "unknown", "no limit", "no rate"],
)
def test_the_fixed_share_is_what_growing_batches_would_gain(estimate, growing, share):
    """It is known where a search has both rates."""
    result = Result("spark/kafka", "spark", "kafka", 1000, 0.001, "measured", None, estimate, growing_hz=growing)
    assert result.fixed_share == share


def test_nothing_is_predicted_where_the_fixed_part_fills_a_batch():
    """The model has no rate there."""
    assert predict_longer_batches(fixed_shares(*batches_of(0.99)), 2) is None


def test_one_window_gives_no_error_of_a_share():
    """The factor may then be anything from 1 on."""
    factor = predict_longer_batches(fixed_shares(*batches_of(0.4, count=1)), 2)
    assert factor.low == 1
    assert factor.estimate == pytest.approx(0.8 / 0.6)
    assert factor.high > factor.estimate


def test_workers_on_their_own_share_everything():
    """Twice as many do twice as much."""
    spans = [Span("a", "processing", 0, S, "work"), Span("b", "source-read", 0, S, "work")]
    found = compute_participation(make_events(spans, []), Windows(0, S // 4, 4))
    assert predict_more_workers(found, 2, overloaded=True) == Factor(2, 2, 2)


@pytest.mark.parametrize(("overloaded", "factor"), [(True, 1 / 0.85), (False, 2.0)], ids=["no more", "headroom"])
def test_workers_that_idle_in_an_overloaded_trial_wait_for_the_source(overloaded, factor):
    """Of a second 0.3 are work: two workers save a half of that. In a sustained trial there is nothing to do."""
    spans = [
        Span("a", activity, number * S + begin * S // 10, number * S + end * S // 10, "work")
        for number in range(4)
        for activity, begin, end in (("processing", 0, 3), ("idle(source)", 3, 10))
    ]
    found = compute_participation(make_events(spans, []), Windows(0, S, 4))
    assert predict_more_workers(found, 2, overloaded=overloaded).estimate == pytest.approx(factor)


def test_workers_that_wait_for_each_other_share_the_work_on_messages():
    """Of 0.2 planning, 0.4 reading and 0.4 processing, more cores halve 0.4 of 0.8: 1 / (1 - 0.5 / 2)."""
    spans, sent = [], []
    for number in range(4):
        begin = number * S
        spans += [
            Span("driver", "planning", begin, begin + S // 5, "plan"),
            Span("task", "source-read", begin + S // 5, begin + 3 * S // 5, "work"),
            Span("task", "processing", begin + 3 * S // 5, begin + S, "work"),
            Span("driver", "waiting", begin + S // 5, begin + S, "plan"),
            Span("task", "waiting", begin, begin + S // 5, "work"),
        ]
        sent += [
            TraceMessage("control", "driver", "task", begin + S // 5 - 1, begin + S // 5),
            TraceMessage("control", "task", "driver", begin + S - 1, begin + S),
        ]
    found = compute_participation(make_events(spans, sent), Windows(0, S, 4))
    assert predict_more_workers(found, 2, overloaded=True).estimate == pytest.approx(4 / 3, rel=1e-6)


def test_equal_parts_make_the_busiest_as_busy_as_the_mean():
    """Of 9 and 3 seconds each of two has 6; the driver does something else."""
    operators = {"a": "work", "b": "work", "driver": "plan"}
    assert predict_equal_parts({"a": 9.0, "b": 3.0, "driver": 7.0}, operators, "a").estimate == 1.5


@pytest.mark.parametrize(
    ("cpu", "factor"),
    [
        ({"framework": 5.0, "busy": 8.0, "available": 20.0}, (2.5, math.sqrt(2.5 * 3.4), 3.4)),
        ({"framework": 17.0, "busy": 20.0, "available": 20.0}, (1.0, 1.0, 1.0)),
        ({}, (math.inf,) * 3),
    ],
    ids=["known", "all in use", "a remote site"],
)
def test_no_factor_exceeds_the_cores_that_are_left(cpu, factor):
    """Of 20 core-seconds others used 3: they need as much for a higher rate, or more in proportion to it."""
    spare = spare_factor(make_measurement(0, 90.0, 80.0, cpu=cpu))
    assert (spare.low, spare.estimate, spare.high) == pytest.approx(factor)
    assert Factor(1.5, 4.0, 5.0).limited(spare).estimate == pytest.approx(min(4.0, factor[1]))


def test_longer_batches_need_the_cpu_time_of_each_batch_less_often():
    """Of the framework's 10 core-seconds 4 are for batches, then 2; the 6 others, and 4 or more beside it, have 18."""
    trial = make_measurement(0, 90.0, 80.0, cpu={"framework": 10.0, "busy": 14.0, "available": 20.0})
    spare = spare_factor(trial, shares=(0.2, 0.4, 0.4), longer=2)
    assert spare.low == pytest.approx(19 / 12)
    assert spare.estimate == pytest.approx(math.sqrt(18 / 10 * 14 / 6))
    assert spare.high == pytest.approx(14 / 6)


def test_what_others_need_is_the_least_that_trials_of_the_rate_show():
    """The broker's JVM was cold in the trial; a slower trial says nothing of this rate."""
    cpu = {"framework": 5.0, "busy": 8.0, "available": 20.0}
    trial = make_measurement(0, 90.0, 80.0, cpu=cpu)
    warm, slow = (make_measurement(n, rate, rate, cpu=cpu | {"busy": 6.0 - n}) for n, rate in ((0, 85.0), (1, 50.0)))
    assert spare_factor(trial, [trial, warm, slow]) == spare_factor(warm)


def test_errors_of_the_rate_and_of_the_factor_add_up():
    """As independent relative ones, and no rate exceeds a bound."""
    predicted = predict_rates(Rates(90.0, 100.0, 110.0), Factor(1.5, 1.5, 1.5))
    assert (predicted.low, predicted.estimate, predicted.high) == pytest.approx((135.0, 150.0, 165.0))
    wider = predict_rates(Rates(90.0, 100.0, 110.0), Factor(1.4, 1.5, 1.6), most=160.0)
    assert (wider.low < 135.0, wider.high) == (True, 160.0)


@pytest.mark.parametrize(
    ("measured", "word"),
    [
        (Rates(145.0, 152.0, 160.0), "held"),
        (Rates(161.0, 163.0, 165.0), "held"),
        (Rates(170.0, 180.0, 190.0), "did not hold"),
        (Rates(95.0, 98.0, 103.0), "did not hold"),
        (Rates(80.0, 130.0, 200.0), "undecided"),
    ],
    ids=["within", "within a tenth", "above", "no gain", "too wide"],
)
def test_a_prediction_holds_if_it_agrees_and_the_change_shows(measured, word):
    """An interval that contains the old rate, too, decides nothing."""
    assert judge_prediction(Rates(95.0, 100.0, 105.0), Rates(145.0, 150.0, 155.0), measured) == word


def test_a_bracket_has_no_rates_to_predict_from():
    """Its ends are no confidence limits."""
    measured = Result("s/k", "s", "k", 100, 0.0, "measured", estimate_hz=100.0, low_hz=99.0, high_hz=101.0)
    assert rates_of(replace(measured, interval="bracket")) is None
    assert rates_of(replace(measured, interval="95 %")) == Rates(99.0, 100.0, 101.0)
