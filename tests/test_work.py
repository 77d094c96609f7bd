"""The work on a message: verified, burnt, accounted for."""

import time

import numpy as np
import pytest
from msgspec.structs import replace

from bench import message
from bench.procfs import boot_id
from bench.work import NO_RUN, Work, burn


def messages(count, cost=0.0, run=5, producer=0):
    writer = message.Writer(run=run, producer=producer, size=100, cost=cost, entropy=0.75)
    return writer.write(0, np.full(count, time.monotonic()), time.monotonic())


WORK = Work(100, 0.75)


def test_a_batch_is_accounted_for():
    """Count, sums and both latencies of every message are in the report."""
    report = WORK.done(messages(10))[0]
    assert (report.run, report.count, report.disordered) == (5, 10, 0)
    assert sum(count for _, count in report.from_due) == sum(count for _, count in report.from_sent) == 10


def test_a_swap_is_found():
    """A message behind a later one of its producer is disordered."""
    batch = messages(10)
    batch[3], batch[4] = batch[4], batch[3]
    assert WORK.done(batch)[0].disordered == 1


def test_producers_that_interleave_are_in_order():
    """Order is only promised within one producer."""
    ours, theirs = messages(3, producer=0), messages(3, producer=1)
    mixed = [one for pair in zip(ours, theirs, strict=True) for one in pair]
    assert WORK.done(mixed)[0].disordered == 0


def test_two_runs_in_a_batch_make_two_reports():
    """What an earlier trial left behind does not count for this one."""
    reports = WORK.done(messages(2, run=4) + messages(3, run=5))
    assert {report.run: report.count for report in reports} == {4: 2, 5: 3}


def test_unreadable_messages_belong_to_no_run():
    """They are corrupted, and nothing is known of them."""
    report = WORK.done([b"x" * 100])[-1]
    assert (report.run, report.corrupted, report.count) == (NO_RUN, 1, 0)


def test_an_empty_batch_is_no_work():
    """Nothing is counted."""
    assert sum(report.count + report.corrupted for report in WORK.done([])) == 0


@pytest.mark.parametrize("seconds", [0.002, 0.02])
def test_burning_spends_the_cpu_time_asked_for(seconds):
    """Never less, and hardly more: thread CPU time, so a busy machine does not matter."""
    spent = [burn(seconds) for _ in range(5)]
    assert min(spent) >= seconds
    assert min(spent) <= seconds * 1.01 + 20e-6


def test_the_cost_in_the_header_is_burnt():
    """What was asked and what was burnt stand in the report."""
    reports = WORK.done(messages(4, cost=0.005))
    asked, burnt = (sum(getattr(report, what) for report in reports) for what in ("asked", "burnt"))
    assert asked == pytest.approx(0.02)
    assert burnt >= asked


def test_a_matrix_in_place_gives_the_same_account():
    """Arrow's buffers need no copy."""
    batch = messages(6)
    matrix = np.frombuffer(b"".join(batch), dtype=np.uint8).reshape(6, 100)
    assert WORK.done_in_place(matrix)[0].sums == WORK.done(batch)[0].sums


def test_another_machine_reports_no_latencies():
    """Its clock counts from its own boot; what was processed is told all the same."""
    here, there = (replace(WORK, boot=boot).done(messages(10))[0] for boot in (boot_id(), "another"))
    assert here.from_due
    assert here.count == there.count == 10
    assert not there.from_due
    assert not there.from_sent
