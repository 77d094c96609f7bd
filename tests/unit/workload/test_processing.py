"""Every message is verified, its CPU cost is spent, and it is counted."""

import threading
import time

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from bench.analysis.histogram import Histogram
from bench.model import message_codec
from bench.model.message_header import ClockReference
from bench.system.clock import epoch, local_clock
from bench.system.procfs import boot_id
from bench.workload.processing import NO_RUN, MessageProcessor, burn
from tests.cpu_cost import assert_spent


def messages(count, cost=0.0, run=5, producer=0, ahead=0.0):
    writer, now = (
        message_codec.MessageWriter(run=run, producer=producer, size=100, cost=cost, entropy=0.75),
        time.monotonic() + ahead,
    )
    return writer.write(0, np.full(count, now), now)


PROCESSOR = MessageProcessor(100, 0.75)


def test_a_batch_is_counted():
    """Count, sums and both latencies of every message are in the report."""
    report = PROCESSOR.process(messages(10))[0]
    assert (report.run, report.count, report.out_of_order) == (5, 10, 0)
    assert sum(count for _, count in report.from_due) == sum(count for _, count in report.from_sent) == 10


def test_two_swapped_messages_are_out_of_order():
    """A message that follows a later one of its producer counts as out of order."""
    batch = messages(10)
    batch[3], batch[4] = batch[4], batch[3]
    assert PROCESSOR.process(batch)[0].out_of_order == 1


def test_producers_that_interleave_are_in_order():
    """Order is only guaranteed within one producer."""
    ours, theirs = messages(3, producer=0), messages(3, producer=1)
    mixed = [one for pair in zip(ours, theirs, strict=True) for one in pair]
    assert PROCESSOR.process(mixed)[0].out_of_order == 0


def test_two_runs_in_a_batch_make_two_reports():
    """Messages of an earlier trial do not count for this one."""
    reports = PROCESSOR.process(messages(2, run=4) + messages(3, run=5))
    assert {report.run: report.count for report in reports} == {4: 2, 5: 3}


def test_unreadable_messages_belong_to_no_run():
    """They count as corrupted, and as nothing else."""
    report = PROCESSOR.process([b"x" * 100])[-1]
    assert (report.run, report.corrupted, report.count) == (NO_RUN, 1, 0)


def test_an_empty_batch_counts_nothing():
    """All counts of its report are 0."""
    assert sum(report.count + report.corrupted for report in PROCESSOR.process([])) == 0


@pytest.mark.parametrize(("seconds", "calls"), [(5e-6, 10_000), (20e-6, 10_000), (100e-6, 2000), (0.02, 5)])
def test_burn_spends_the_requested_cpu_time(seconds, calls):
    """Within 1 % in the sum. It is thread CPU time, so a busy machine does not matter."""
    assert_spent(lambda: (sum(burn(seconds) for _ in range(calls)), seconds * calls))


@pytest.mark.parametrize("cost", [5e-6, 20e-6, 100e-6])
def test_batches_of_one_message_spend_their_cost(cost):
    """The sum over 10,000 batches is right within 1 %: each carries over what it spent too much.

    Nothing follows the last one: a hypervisor that takes its core away makes it as much longer.
    """
    writer = message_codec.MessageWriter(run=5, producer=0, size=100, cost=cost, entropy=0.75)
    batches = [[one] for one in writer.write(0, np.zeros(10_000), 0.0)]
    reports = [report for batch in batches for report in PROCESSOR.process(batch)]
    requested, used = (sum(getattr(report, name) for report in reports) for name in ("cpu_requested_s", "cpu_used_s"))
    longest = max(report.cpu_used_s for report in reports)
    assert requested == pytest.approx(10_000 * cost, rel=1e-6)
    assert 0.99 * requested <= used <= 1.01 * requested + longest


def test_each_run_in_a_batch_has_its_own_cost():
    """What an earlier trial's messages cost does not count for this trial."""
    reports = PROCESSOR.process(messages(2, cost=0.001, run=4) + messages(3, cost=0.002, run=5))
    assert {report.run: report.cpu_requested_s for report in reports} == pytest.approx({4: 0.002, 5: 0.006})


def test_the_cpu_cost_in_the_header_is_spent():
    """The requested and the used CPU time are in the report."""

    def spend():
        (report,) = PROCESSOR.process(messages(4, cost=0.005))
        assert report.cpu_requested_s == pytest.approx(0.02)
        return report.cpu_used_s, report.cpu_requested_s

    assert_spent(spend)


def test_a_throttled_worker_takes_the_whole_cost_and_burns_its_duty():
    """The rest is slept, and no CPU time is asked for it."""
    began = time.monotonic()
    report = replace(PROCESSOR, duty=0.25).process(messages(4, cost=0.02))[0]
    assert time.monotonic() - began >= 0.08
    assert report.cpu_requested_s == pytest.approx(0.02)


def test_results_that_exist_together_are_as_late_as_the_last_one():
    """The first message of a batch waits for the last one; their processing is timed one by one all the same."""
    batch = messages(4, cost=0.02)
    single, together = (replace(PROCESSOR, results_together=one).process(batch)[0] for one in (False, True))
    assert histogram(single.from_due).quantile(0.25) < histogram(single.from_due).quantile(1.0)
    for late in (together.from_due, together.from_sent):
        assert histogram(late).quantile(0.25) == histogram(late).quantile(1.0) >= 0.08
    assert histogram(together.processing).quantile(0.25) < histogram(together.processing).quantile(1.0)


def test_a_matrix_gives_the_same_counts_as_its_messages():
    """Arrow's buffers are processed without a copy."""
    batch = messages(6)
    matrix = np.frombuffer(b"".join(batch), dtype=np.uint8).reshape(6, 100)
    assert PROCESSOR.process_matrix(matrix)[0].sums == PROCESSOR.process(batch)[0].sums


def test_another_machine_reports_no_latencies():
    """Its clock counts from its own boot; the messages are counted all the same."""
    processors = [replace(PROCESSOR, clock=ClockReference(name)) for name in (boot_id(), "another")]
    here, there = (processor.process(messages(10))[0] for processor in processors)
    assert here.from_due
    assert here.count == there.count == 10
    assert not there.from_due
    assert not there.from_sent


def elsewhere(off, max_error):
    """Return the processor of a machine whose CLOCK_REALTIME is `off` seconds off, for messages of another machine."""
    return replace(PROCESSOR, clock=ClockReference("another", epoch() - off, max_error))


def test_another_machine_with_a_synchronised_clock_reports_latencies():
    """By way of CLOCK_REALTIME: here the monotonic clocks differ by 100 s."""
    near, far = PROCESSOR.process(messages(10))[0], elsewhere(100, 0.01).process(messages(10, ahead=100))[0]
    assert sum(count for _, count in far.from_due) == 10
    assert histogram(far.from_due).quantile(0.5) == pytest.approx(histogram(near.from_due).quantile(0.5), abs=0.05)
    assert far.negative == 0


@pytest.mark.parametrize(("max_error", "impossible"), [(0.01, 10), (2.0, 0)])
def test_a_negative_latency_within_the_error_of_the_clocks_is_not_impossible(max_error, impossible):
    """Here a message seems to be done a second before it was sent."""
    assert elsewhere(-1, max_error).process(messages(10))[0].negative == impossible


def histogram(sparse):
    dense = Histogram()
    dense.add(sparse)
    return dense


def test_times_written_by_other_hosts_are_inexact_on_this_machine_too():
    """With an unknown error there is no latency; a negative latency within a known error is not impossible."""
    early = messages(10, ahead=0.5)
    remote = local_clock(theirs=True)
    assert not replace(PROCESSOR, clock=remote).process(early)[0].from_due
    assert replace(PROCESSOR, clock=replace(remote, max_error=1.0)).process(early)[0].negative == 0
    assert replace(PROCESSOR, clock=replace(remote, max_error=0.01)).process(early)[0].negative == 10


def records(batch, more=b""):
    """The records with which a program reports messages, as a matrix."""
    rows = [message[:64] + more for message in batch]
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)


def test_headers_that_come_back_are_counted():
    """Count and latencies are exact; bodies and CPU time are unknown, and the order is not looked at."""
    (report,) = PROCESSOR.count_records(records(reversed(messages(10, cost=0.001))))
    assert (report.run, report.count, report.out_of_order, report.negative) == (5, 10, 0, 0)
    assert (report.unverified, report.cpu_used_s, report.processing) == (10, None, [])
    assert report.cpu_requested_s == pytest.approx(0.01)
    assert sum(count for _, count in report.from_due) == 10


def test_cpu_time_that_is_reported_is_shared_among_runs():
    """Each has as much of it as its messages asked for."""
    batch = messages(1, cost=0.001, run=4) + messages(3, cost=0.001, run=5)
    reports = PROCESSOR.count_records(records(batch, b"%08x--------" % 2000))
    assert {report.run: report.cpu_used_s for report in reports} == pytest.approx({4: 0.002, 5: 0.006})
    assert {report.run: report.unverified for report in reports} == {4: 1, 5: 3}


def test_records_that_cannot_be_read_are_corrupted_messages():
    """They belong to no run."""
    (report,) = PROCESSOR.count_records(np.zeros((3, 64), dtype=np.uint8))
    assert (report.run, report.corrupted, report.count, report.unverified) == (NO_RUN, 3, 0, 0)


def test_a_traced_batch_carries_spans_of_what_was_done():
    """They cover the call: reading the messages, and burning their CPU cost."""
    work = replace(PROCESSOR, traced=True)
    work.record_spans("w", slot_s=0.0)
    begin = time.monotonic()
    report = work.process(messages(3, cost=0.002))[-1]
    spans = {span.activity: span for span in report.trace.spans}
    assert {"deserialize", "processing", "reporting"} <= spans.keys()
    assert spans["processing"].messages == 3
    assert (spans["processing"].end - spans["processing"].begin) / 1e9 >= 0.99 * report.cpu_used_s
    assert begin * 1e9 <= spans["processing"].begin < spans["reporting"].end <= time.monotonic() * 1e9


def test_a_framework_that_records_nothing_has_spans_of_its_batches():
    """What is between two batches is reading and waiting."""
    work, seen = replace(PROCESSOR, traced=True), []

    def process():
        for _ in range(3):
            seen.extend(work.process(messages(50, cost=0.002)))

    thread = threading.Thread(target=process)
    thread.start()
    thread.join()
    activities = {span.activity for report in seen if report.trace for span in report.trace.spans}
    assert {"deserialize", "processing"} <= activities


def test_a_batch_that_is_not_traced_carries_nothing():
    """Nor does its encoded report name the trace."""
    report = PROCESSOR.process(messages(3))[0]
    assert report.trace is None
    assert b"trace" not in msgspec.json.encode(report)
