"""Losses and duplicates are found from three sums, without a stored sequence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.workload.delivery_counts import DeliveryCounts, ProcessingReport, merge_reports, sum_range, sum_sequence


def tally_of(seq, producer=0):
    tally = DeliveryCounts()
    tally.add(ProcessingReport(0.0, 1, [sum_sequence(producer, np.array(seq, dtype=np.uint64))]))
    return tally


@given(st.integers(0, 3000))
def test_the_sums_of_the_first_numbers_need_no_numbers(count):
    """The closed form agrees with adding them up."""
    assert sum_range(4, count) == sum_sequence(4, np.arange(count, dtype=np.uint64))


@given(st.integers(0, 500), st.randoms(use_true_random=False))
def test_any_order_and_any_split_is_complete(count, chance):
    """Order and batches do not matter to the sums."""
    seq = list(range(count))
    chance.shuffle(seq)
    cut = chance.randint(0, count)
    tally = tally_of(seq[:cut])
    tally.add(ProcessingReport(0.0, 1, [sum_sequence(0, np.array(seq[cut:], dtype=np.uint64))]))
    assert tally.reconcile({0: count}) == (0, 0)


@pytest.mark.parametrize(
    ("seq", "expected"),
    [
        pytest.param([0, 1, 3, 4], (1, 0), id="one lost"),
        pytest.param([0, 1, 2, 3, 4, 4], (0, 1), id="one twice"),
        pytest.param([0, 1, 3, 4, 4], (1, 1), id="one lost and one twice"),
        pytest.param([0, 0, 3, 4], (2, 1), id="two lost and one twice"),
        pytest.param([0, 1, 2, 3, 3, 3], (1, 2), id="one lost and one three times"),
        pytest.param([], (5, 0), id="all lost"),
    ],
)
def test_what_went_wrong_is_explained_by_the_fewest_mistakes(seq, expected):
    """(lost, duplicated) of the five messages that were sent."""
    assert tally_of(seq).reconcile({0: 5}) == expected


def test_a_producer_that_nobody_sent_from_is_a_duplicate():
    """Messages of a stranger do not pass for ours."""
    assert tally_of([0, 1], producer=9).reconcile({}) == (0, 2)


def test_sums_wrap_around_without_losing_exactness():
    """Numbers near 2^48 do not overflow unseen."""
    high = list(range(2**40, 2**40 + 1000))
    assert tally_of(high).reconcile({0: 0}) == (0, 1000)


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 500), st.integers(0, 9)), max_size=20))
def test_merged_reports_say_what_they_said_one_by_one(parts):
    """One for each run."""
    reports = [
        ProcessingReport(
            number,
            run,
            [sum_range(producer, count)],
            bad,
            bad,
            count,
            count,
            [(bad, count)],
            [(3, bad)],
            [(count, 1)],
            bad,
        )
        for number, (run, producer, count, bad) in enumerate(parts)
    ]
    together = merge_reports(reports)
    assert sorted(report.run for report in together) == sorted({report.run for report in reports})
    for one in together:
        apart, at_once = DeliveryCounts(), DeliveryCounts()
        for report in reports:
            if report.run == one.run:
                apart.add(report)
        at_once.add(one)
        assert at_once.reconcile({}) == apart.reconcile({})
        assert (one.count, one.corrupted, one.cpu_requested_s, one.negative) == (
            apart.count,
            apart.corrupted,
            apart.cpu_requested_s,
            apart.negative,
        )
        for name in ("from_due", "from_sent", "processing"):
            assert getattr(at_once, name).sparse() == getattr(apart, name).sparse()
