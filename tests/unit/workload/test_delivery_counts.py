"""Losses and duplicates follow from three sums, without a stored sequence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.workload.delivery_counts import DeliveryCounts, ProcessingReport, merge_reports, sum_range, sum_sequence


def counts_of(seq, producer=0):
    counts = DeliveryCounts()
    counts.add(ProcessingReport(0.0, 1, [sum_sequence(producer, np.array(seq, dtype=np.uint64))]))
    return counts


@given(st.integers(0, 3000))
def test_the_sums_of_a_range_are_those_of_its_numbers(number):
    """The closed form agrees with adding the numbers up."""
    assert sum_range(4, number) == sum_sequence(4, np.arange(number, dtype=np.uint64))


@given(st.integers(0, 500), st.randoms(use_true_random=False))
def test_any_order_and_any_split_is_complete(count, chance):
    """The sums do not depend on order and batches."""
    seq = list(range(count))
    chance.shuffle(seq)
    cut = chance.randint(0, count)
    counts = counts_of(seq[:cut])
    counts.add(ProcessingReport(0.0, 1, [sum_sequence(0, np.array(seq[cut:], dtype=np.uint64))]))
    assert counts.reconcile({0: count}) == (0, 0)


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
def test_a_difference_is_explained_by_the_fewest_losses_and_duplicates(seq, expected):
    """Five messages were sent; the counts give (lost, duplicated)."""
    assert counts_of(seq).reconcile({0: 5}) == expected


def test_messages_of_an_unknown_producer_are_duplicates():
    """They do not replace messages of a producer that sent."""
    assert counts_of([0, 1], producer=9).reconcile({}) == (0, 2)


def test_sums_wrap_around_without_losing_exactness():
    """An overflow of the sums by numbers near 2^48 does not hide a message."""
    high = list(range(2**40, 2**40 + 1000))
    assert counts_of(high).reconcile({0: 0}) == (0, 1000)


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2), st.integers(0, 500), st.integers(0, 9)), max_size=20))
def test_merged_reports_have_the_counts_of_the_single_reports(parts):
    """There is one merged report for each run."""
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
    merged = merge_reports(reports)
    assert sorted(report.run for report in merged) == sorted({report.run for report in reports})
    for one in merged:
        singly, at_once = DeliveryCounts(), DeliveryCounts()
        for report in reports:
            if report.run == one.run:
                singly.add(report)
        at_once.add(one)
        assert at_once.reconcile({}) == singly.reconcile({})
        assert (one.count, one.corrupted, one.cpu_requested_s, one.negative) == (
            singly.count,
            singly.corrupted,
            singly.cpu_requested_s,
            singly.negative,
        )
        for name in ("from_due", "from_sent", "processing"):
            assert getattr(at_once, name).sparse() == getattr(singly, name).sparse()
