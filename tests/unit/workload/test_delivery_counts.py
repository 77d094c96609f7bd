"""Losses and duplicates follow exactly from the numbers that arrived; without them, the fewest from three sums."""

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.workload import number_sets
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


def faulty(chance, count, parts):
    """Return sequence numbers 0 to count - 1 with random faults, in batches of several partitions; lost; duplicated."""
    arrived = [number for number in range(count) if chance.random() > 0.01]
    again = [number for number in arrived if chance.random() < 0.01]
    streams = [[number for number in arrived if number % parts == part] for part in range(parts)]
    for number in again:
        stream = streams[chance.randrange(parts)]
        stream.insert(chance.randint(0, len(stream)), number)
    batches = []
    while any(streams):
        stream = chance.choice([stream for stream in streams if stream])
        taken = chance.choice([1, 7, 100, 900])
        batches.append(stream[:taken])
        del stream[:taken]
    return batches, count - len(arrived), len(again)


@pytest.mark.parametrize("merged", [1, 10, 1000], ids=lambda count: f"{count} reports at once")
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("seed", range(5))
def test_random_faults_are_counted_exactly(seed, parts, merged):
    """Lost and duplicated messages are the true ones, however reports are merged and sent."""
    chance = random.Random(seed)
    batches, lost, duplicated = faulty(chance, 20_000, parts)
    reports = [
        ProcessingReport(0.0, 1, [sum_sequence(0, np.array(batch, dtype=np.uint64))]) for batch in batches if batch
    ]
    counts = DeliveryCounts()
    for first in range(0, len(reports), merged):
        (one,) = merge_reports(reports[first : first + merged])
        counts.add(msgspec.json.decode(msgspec.json.encode(one), type=ProcessingReport))
    assert (counts.reconcile({0: 20_000}), counts.exact) == ((lost, duplicated), True)


def test_ten_lost_and_eight_duplicated_are_ten_and_eight():
    """They are not two lost ones."""
    assert counts_of([*range(10, 100), *range(20, 28)]).reconcile({0: 100}) == (10, 8)


def test_faults_that_leave_all_sums_the_same_are_counted():
    """0 + 4 + 5 = 1 + 2 + 6, and so are their squares."""
    assert counts_of([1, 1, 2, 2, 3, 6, 6]).reconcile({0: 7}) == (3, 3)


def test_numbers_beyond_the_memory_are_counted_by_their_sums(monkeypatch):
    """The counts are then the least that is possible, and said to be."""
    monkeypatch.setattr(number_sets, "MAX_BLOCKS", 1)
    counts = counts_of([0, 1, 3, number_sets.BLOCK + 1, 2 * number_sets.BLOCK])
    assert not counts.exact
    assert counts.reconcile({0: 5}) == (1, 1)


def test_full_blocks_take_no_memory(monkeypatch):
    """A stream without faults, of several partitions, is exact at any length."""
    monkeypatch.setattr(number_sets, "MAX_BLOCKS", 2)
    counts = DeliveryCounts()
    for first in range(0, 5 * number_sets.BLOCK, 2**18):
        for part in range(4):
            numbers = np.arange(first + part, first + 2**18, 4, dtype=np.uint64)
            counts.add(ProcessingReport(0.0, 1, [sum_sequence(0, numbers)]))
    assert (counts.exact, counts.reconcile({0: 5 * number_sets.BLOCK})) == (True, (0, 0))
    assert counts.reconcile({0: 5 * number_sets.BLOCK - 3}) == (0, 3)


def test_sums_without_numbers_are_not_exact():
    """As in a report of another program."""
    counts = DeliveryCounts()
    counts.add(ProcessingReport(0.0, 1, [msgspec.structs.replace(sum_range(0, 5), numbers=number_sets.NumberSet())]))
    assert (counts.exact, counts.reconcile({0: 6})) == (False, (1, 0))


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
def test_lost_and_duplicated_messages_are_counted(seq, expected):
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


def test_cpu_time_that_one_report_does_not_know_is_unknown():
    """A sum of the others would be too small; bodies that nobody verified are added up."""
    known, unknown = (ProcessingReport(0.0, 1, [], cpu_used_s=used, unverified=2) for used in (0.5, None))
    counts = DeliveryCounts()
    for report in (known, unknown, known):
        counts.add(report)
    (merged,) = merge_reports([known, unknown])
    assert (counts.cpu_used_s, counts.unverified) == (None, 6)
    assert (merged.cpu_used_s, merged.unverified) == (None, 4)
    assert merge_reports([known, known])[0].cpu_used_s == 1.0


def arrive(counts, numbers, restart):
    """Add a report of messages that came after so many restarts."""
    seq = np.array(numbers, dtype=np.uint64)
    counts.add(ProcessingReport(0.0, 1, [sum_sequence(0, seq)], restart=restart))


def test_what_a_restart_processes_again_is_neither_lost_nor_duplicated():
    """Messages since the position that it went back to come again, each counted as often as that happened."""
    counts = DeliveryCounts()
    for restart, numbers in enumerate([range(50), range(30, 60), range(45, 100)]):
        arrive(counts, numbers, restart)
    assert counts.reconcile({0: 100}) == (0, 0)
    assert (counts.count, counts.processed_again) == (135, 35)


@pytest.mark.parametrize("restart", [0, 1], ids=["before", "after"])
def test_a_message_that_comes_twice_without_a_restart_is_duplicated(restart):
    """A restart excuses only what was processed before it, and nothing that is missing."""
    counts = DeliveryCounts()
    arrive(counts, range(10), 0)
    for _ in range(2):
        arrive(counts, range(20, 30), restart)
    assert counts.reconcile({0: 30}) == (10, 10)
    assert counts.processed_again == 0


def test_numbers_of_each_producer_are_processed_again_by_themselves():
    """Producers number their messages alike."""
    counts = DeliveryCounts()
    for restart, producer in [(0, 0), (1, 1), (1, 0)]:
        sums = [sum_sequence(producer, np.arange(10, dtype=np.uint64))]
        counts.add(ProcessingReport(0.0, 1, sums, restart=restart))
    assert counts.reconcile({0: 10, 1: 10}) == (0, 0)
    assert counts.processed_again == 10
