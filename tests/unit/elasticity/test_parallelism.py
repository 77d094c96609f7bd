"""The optimal parallelism follows from true rates, and the answers of the paper and its reference are ours."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.elasticity.dataflow import Dataflow, chain
from bench.elasticity.parallelism import observed_scalability, required_instances, round_up
from bench.elasticity.samples import InstanceSample, OperatorRates, Sample, samples_since_change, true_rates

ONE = chain("source", "first", "second")
TWO = Dataflow(("a", "b"), {"first": ("a", "b"), "second": ("first",)})


def rates(processing, output, instances=1):
    return OperatorRates(processing, output, instances)


def plan(dataflow, target, **operators):
    return tuple(round_up(x) for x in required_instances(dataflow, operators, target).values())


# --- known answers: the reference implementation's tests, and a job on Flink 2.3.0


@pytest.mark.parametrize(
    ("first", "second", "each", "one_source", "two_sources"),
    [
        (rates(50, 400), rates(100, 0), 100, (2, 8), (4, 16)),
        (rates(40, 700), rates(99, 0), 200, (5, 36), (10, 71)),
        (rates(10, 700), rates(201, 0), 200, (20, 70), (40, 140)),
    ],
)
def test_the_answers_of_the_reference_implementation(first, second, each, one_source, two_sources):
    """One or two sources of `each` records/s before two operators: its own unit tests."""
    operators = {"first": first, "second": second}
    assert plan(ONE, {"source": each}, **operators) == one_source
    assert plan(TWO, {"a": each, "b": each}, **operators) == two_sources


def test_rounding_is_left_to_the_end():
    """With x = 35.354 for the second operator; five instances of the first would have sent more than is offered."""
    needed = required_instances(ONE, {"first": rates(40, 700), "second": rates(99, 0)}, {"source": 200.0})
    assert needed == pytest.approx({"first": 5.0, "second": 35.354}, abs=1e-3)


def test_word_count_needs_ten_and_twenty():
    """Published for Heron: 1 M sentences/min; FlatMap 100 k/min and Count 1 M words/min an instance; 20 words each."""
    words = {"first": rates(1e5 / 60, 2e6 / 60), "second": rates(1e6 / 60, 0)}
    assert plan(ONE, {"source": 1e6 / 60}, **words) == (10, 20)


def test_a_job_on_flink_needs_five_and_three():
    """Recorded on Flink 2.3.0 at 40 records/s: busy 0.997 and 0.588. By nominal rates it was (4, 2), which failed."""
    first = true_rates([InstanceSample(9.0, 89.3, 0.997)])
    second = true_rates([InstanceSample(89.1, 0.0, 0.588)])
    needed = required_instances(ONE, {"first": first, "second": second}, {"source": 40.0})
    assert needed == pytest.approx({"first": 4.431, "second": 2.619}, abs=1e-3)
    assert plan(ONE, {"source": 40.0}, first=first, second=second) == (5, 3)
    assert plan(ONE, {"source": 40.0}, first=rates(10, 100), second=rates(200, 0)) == (4, 2)


# --- properties

RATE = st.floats(0.1, 1e4)
OPERATOR = st.builds(
    lambda processing, selectivity, instances: rates(processing, processing * selectivity, instances),
    st.floats(10, 1e3),
    st.floats(0.1, 3),
    st.integers(1, 50),
)
OPERATORS = st.fixed_dictionaries(dict.fromkeys(("a", "b", "c", "d"), OPERATOR))
DIAMOND = Dataflow(("s",), {"a": ("s",), "b": ("a",), "c": ("a",), "d": ("b", "c")})


@given(operators=OPERATORS, target=RATE, factor=st.sampled_from([1e-3, 0.5, 7.0, 1e4]))
def test_all_rates_times_a_factor_need_the_same_instances(operators, target, factor):
    """Messages a second or a minute: the answer has no unit."""
    scaled = {
        name: rates(factor * one.processing, factor * one.output, one.instances) for name, one in operators.items()
    }
    needed = required_instances(DIAMOND, operators, {"s": target})
    assert required_instances(DIAMOND, scaled, {"s": factor * target}) == pytest.approx(needed, rel=1e-9)


@given(operators=OPERATORS, target=RATE, more=st.floats(1.0, 100.0))
def test_more_load_never_needs_fewer_instances(operators, target, more):
    """This holds for every operator."""
    before = required_instances(DIAMOND, operators, {"s": target})
    after = required_instances(DIAMOND, operators, {"s": target * more})
    assert all(after[name] >= before[name] * (1 - 1e-12) for name in before)


@given(operators=OPERATORS, target=RATE)
def test_where_scaling_is_linear_one_step_is_enough(operators, target):
    """With the instances of the first answer the second is the same."""
    first = {name: round_up(x) for name, x in required_instances(DIAMOND, operators, {"s": target}).items()}
    grown = {
        name: rates(one.processing / one.instances * first[name], one.output / one.instances * first[name], first[name])
        for name, one in operators.items()
    }
    second = required_instances(DIAMOND, grown, {"s": target})
    assert all(first[name] - 1 - 1e-6 < second[name] <= first[name] * (1 + 1e-9) or first[name] == 1 for name in first)


@pytest.mark.parametrize("whole", [1, 3, 10, 1000])
def test_a_whole_number_is_not_rounded_up_by_an_error_of_rounding(whole):
    """But a part of an instance is."""
    assert [round_up(whole + 1e-12), round_up(whole - 1e-12), round_up(whole + 1e-6)] == [whole, whole, whole + 1]


def test_nothing_to_do_still_needs_one_instance():
    """An operator does not end."""
    assert round_up(0.0) == 1


# --- the dataflow and its metrics


def test_an_operator_that_reads_what_is_not_there_is_refused():
    """The error names what is missing."""
    with pytest.raises(ValueError, match="nobody"):
        Dataflow(("s",), {"a": ("nobody",)})
    with pytest.raises(ValueError, match="reads nothing"):
        Dataflow(("s",), {"a": ()})


def test_the_true_rate_of_an_operator_is_the_sum_of_its_instances():
    """Waiting does not count; an instance without work counts as the mean of the others."""
    busy = [InstanceSample(100, 200, 1.0), InstanceSample(50, 100, 0.25)]
    assert true_rates(busy) == rates(300, 600, 2)
    assert true_rates([*busy, InstanceSample(0, 0, 0.0)]) == rates(450, 900, 3)
    assert true_rates([InstanceSample(0, 0, 0.0)]) is None


def test_with_skew_the_busiest_instance_is_the_limit():
    """All instances together process no more until it is the bottleneck."""
    skewed = [InstanceSample(90, 90, 0.9), InstanceSample(10, 10, 0.1)]
    assert true_rates(skewed) == rates(200, 200, 2)
    assert true_rates(skewed, "max") == OperatorRates(pytest.approx(100 / 0.9), pytest.approx(100 / 0.9), 2)


@pytest.mark.parametrize(
    ("points", "share"),
    [
        ([(1, 100.0), (2, 200.0), (4, 400.0)], 1.0),
        ([(1, 100.0), (2, 120.0)], (100 + 240) / 500),
        ([(1, 100.0), (2, 300.0)], 1.0),
        ([(4, 100.0)], 1.0),
        ([], 1.0),
    ],
    ids=["linear", "less than linear", "more than linear", "one point", "none"],
)
def test_observed_scalability_is_a_least_squares_fit(points, share):
    """It is at most 1, and 1 where two numbers of instances have not been seen."""
    assert observed_scalability(points) == pytest.approx(share)


def sample(at, instances, *, seconds=10.0, offered=1.0, taken=1.0):
    one = InstanceSample(10, 10, 5.0)
    return Sample(at, seconds, {"source": offered}, {"source": taken}, {"first": (one,) * instances})


def test_intervals_that_began_during_the_warm_up_do_not_count():
    """Nor do those with another number of instances."""
    samples = [sample(10, 1), sample(20, 2), sample(30, 2), sample(40, 2)]
    assert [one.at for one in samples_since_change(samples, {"first": 2}, 10)] == [30, 40]
    assert samples_since_change(samples, {"first": 3}) == []


def test_the_target_rate_ratio_is_that_of_the_source_farthest_behind():
    """Nothing offered is nothing missed."""
    assert sample(10, 1, offered=10.0, taken=5.0).target_rate_ratio == 2
    assert sample(10, 1, offered=0.0, taken=0.0).target_rate_ratio == 1
    assert math.isinf(sample(10, 1, offered=10.0, taken=0.0).target_rate_ratio)
