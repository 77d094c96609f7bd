"""The work on a message: verified, burnt, accounted for."""

import time

import numpy as np
import pytest
from msgspec.structs import replace

from bench.analysis.histogram import Histogram
from bench.model import message_codec
from bench.model.message_codec import Clock
from bench.system.clock import epoch, local_clock
from bench.system.procfs import boot_id
from bench.workload.processing import NO_RUN, Work, burn


def messages(count, cost=0.0, run=5, producer=0, ahead=0.0):
    writer, now = (
        message_codec.Writer(run=run, producer=producer, size=100, cost=cost, entropy=0.75),
        time.monotonic() + ahead,
    )
    return writer.write(0, np.full(count, now), now)


WORK = Work(100, 0.75)


def test_a_batch_is_accounted_for():
    """Count, sums and both latencies of every message are in the report."""
    report = WORK.done(messages(10))[0]
    assert (report.run, report.count, report.out_of_order) == (5, 10, 0)
    assert sum(count for _, count in report.from_due) == sum(count for _, count in report.from_sent) == 10


def test_a_swap_is_found():
    """A message behind a later one of its producer is out_of_order."""
    batch = messages(10)
    batch[3], batch[4] = batch[4], batch[3]
    assert WORK.done(batch)[0].out_of_order == 1


def test_producers_that_interleave_are_in_order():
    """Order is only promised within one producer."""
    ours, theirs = messages(3, producer=0), messages(3, producer=1)
    mixed = [one for pair in zip(ours, theirs, strict=True) for one in pair]
    assert WORK.done(mixed)[0].out_of_order == 0


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
    asked, cpu_used_s = (sum(getattr(report, what) for report in reports) for what in ("cpu_requested_s", "cpu_used_s"))
    assert asked == pytest.approx(0.02)
    assert cpu_used_s >= asked


def test_a_matrix_in_place_gives_the_same_account():
    """Arrow's buffers need no copy."""
    batch = messages(6)
    matrix = np.frombuffer(b"".join(batch), dtype=np.uint8).reshape(6, 100)
    assert WORK.done_in_place(matrix)[0].sums == WORK.done(batch)[0].sums


def test_another_machine_reports_no_latencies():
    """Its clock counts from its own boot; what was processed is told all the same."""
    here, there = (replace(WORK, clock=Clock(name)).done(messages(10))[0] for name in (boot_id(), "another"))
    assert here.from_due
    assert here.count == there.count == 10
    assert not there.from_due
    assert not there.from_sent


def elsewhere(off, apart):
    """A machine whose clock is `off` seconds behind what it says, for messages of another one's."""
    return replace(WORK, clock=Clock("another", epoch() - off, apart))


def test_another_machine_whose_clock_is_known_reports_latencies():
    """Over the clock that both have: here 100 s of monotonic time lie between them."""
    near, far = WORK.done(messages(10))[0], elsewhere(100, 0.01).done(messages(10, ahead=100))[0]
    assert sum(count for _, count in far.from_due) == 10
    assert histogram(far.from_due).quantile(0.5) == pytest.approx(histogram(near.from_due).quantile(0.5), abs=0.05)
    assert far.negative == 0


@pytest.mark.parametrize(("apart", "impossible"), [(0.01, 10), (2.0, 0)])
def test_what_clocks_may_differ_by_is_not_impossible(apart, impossible):
    """A message that seems to be done a second before it was sent."""
    assert elsewhere(-1, apart).done(messages(10))[0].negative == impossible


def histogram(sparse):
    found = Histogram()
    found.add(sparse)
    return found


def test_messages_that_other_hosts_stamp_are_read_with_doubt_on_this_machine_too():
    """Where nobody knows how far clocks are apart there is no latency; where it is known, what lies within is not impossible."""
    early = messages(10, ahead=0.5)
    theirs = local_clock(theirs=True)
    assert not replace(WORK, clock=theirs).done(early)[0].from_due
    assert replace(WORK, clock=replace(theirs, apart=1.0)).done(early)[0].negative == 0
    assert replace(WORK, clock=replace(theirs, apart=0.01)).done(early)[0].negative == 10
