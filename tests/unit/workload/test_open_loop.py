"""An open-loop sender offers what is due, no more and no later, and its progress is exact."""

import time

import numpy as np
import pytest
from manual_clock import ManualClock
from msgspec.structs import replace

from bench.model.message_codec import read
from bench.model.message_filler import make_filler
from bench.model.trace import Span, TraceEvents
from bench.workload.batch_writer import MAX_BATCH_MESSAGES
from bench.workload.load_spec import LoadSpec, SendProgressSum
from bench.workload.open_loop import FIRST_BATCH_DIVISOR, STALL_TIMEOUT_S, OpenLoopSender, run_load


class Bucket:
    """A client that takes messages up to its capacity and confirms them at once, if it confirms at all."""

    def __init__(self, capacity=10**9, confirms=True):
        self.capacity, self.confirms, self.messages, self.calls = capacity, confirms, [], 0

    def send(self, messages):
        taken = messages[: max(0, self.capacity - len(self.messages))]
        self.messages += taken
        self.calls += 1
        return len(taken)

    def confirmed(self):
        return (len(self.messages) if self.confirms else 0), 0


class RecordingBucket(Bucket):
    """A client that records a lap of a second with each batch."""

    def record(self, spans):
        self.spans, self.at = spans, time.monotonic()

    def send(self, messages):
        self.at += 1.0
        self.spans.lap("serialize", len(messages), at=self.at)
        return super().send(messages)


def spec(rate=100.0, seconds=1.0, limit=None, begin=1000.0):
    return LoadSpec(7, rate, begin, seconds, message_bytes=100, cpu_seconds=0.0, entropy=0.5, limit=limit)


def run(sender, clock=None, cancel_at=float("inf")):
    """Run the sender to its end, or cancel it at a time; return the progress it reported."""
    clock, reported = clock or ManualClock(), []
    run_load(sender, reported.append, lambda: clock.now >= cancel_at, clock, clock.sleep)
    return reported


def test_nothing_is_sent_before_it_is_due():
    """The first message is due half an interval after the begin."""
    bucket = Bucket()
    sender = OpenLoopSender(spec(), bucket)
    sender.step(1000.0049)
    assert bucket.messages == []
    sender.step(1000.0051)
    assert len(bucket.messages) == 1


def test_a_late_step_sends_all_that_is_due_by_then():
    """Due times do not move when a step comes late."""
    bucket = Bucket()
    OpenLoopSender(spec(), bucket).step(1000.5)
    heads = read(bucket.messages, 100, make_filler(100, 0.5))
    assert heads.seq.tolist() == list(range(50))
    assert np.allclose(heads.due, 1000 + (np.arange(50) + 0.5) / 100)
    assert np.allclose(heads.sent, 1000.5)


def test_a_step_is_bounded():
    """However much is due, one step offers one batch: a small one first, and larger ones while steps are quick."""
    bucket = Bucket()
    sender, taken = OpenLoopSender(spec(rate=1e6), bucket), []
    for _ in range(8):
        sender.step(1001)
        sender.adapt_batch_size(0)
        taken.append(len(bucket.messages) - sum(taken))
    assert taken[0] == MAX_BATCH_MESSAGES // FIRST_BATCH_DIVISOR
    assert taken == sorted(taken)
    assert taken[-1] == MAX_BATCH_MESSAGES


def test_a_step_that_took_long_makes_the_next_one_smaller():
    """A slow client is not given more at once than it can take in a moment."""
    bucket = Bucket()
    sender = OpenLoopSender(spec(rate=1e6), bucket)
    sender.adapt_batch_size(0.1)
    sender.step(1001)
    assert len(bucket.messages) == MAX_BATCH_MESSAGES // FIRST_BATCH_DIVISOR // 2


@pytest.mark.parametrize("rate", [0.05, 3.0, 1234.5, 1e6], ids="{:g} per s".format)
def test_all_messages_are_sent(rate):
    """Every message goes out once, in order, and the last progress report counts them all."""
    bucket, seconds = Bucket(), max(0.02, 2 / rate)
    last = run(OpenLoopSender(spec(rate, seconds), bucket))[-1]
    assert last.done
    assert last.accepted == last.confirmed == len(bucket.messages) == round(rate * seconds)
    assert read(bucket.messages, 100, make_filler(100, 0.5)).seq.tolist() == list(range(last.accepted))


def test_messages_that_the_source_does_not_take_are_offered_again():
    """Back-pressure loses nothing and repeats nothing."""
    bucket = Bucket(capacity=10)
    sender = OpenLoopSender(spec(), bucket)
    sender.step(1000.5)
    bucket.capacity = 10**9
    sender.step(1000.6)
    assert read(bucket.messages, 100, make_filler(100, 0.5)).seq.tolist() == list(range(50))


def test_blocked_time_lasts_from_a_partial_step_to_a_full_one():
    """The time in which the source does not take more is counted, also while it lasts."""
    bucket = Bucket(capacity=10)
    sender = OpenLoopSender(spec(), bucket)
    sender.step(1000.5)
    assert sender.progress(1000.6).blocked == pytest.approx(0.1)
    bucket.capacity = 10**9
    sender.step(1000.7)
    assert sender.progress(1000.9).blocked == pytest.approx(0.2)


def test_late_is_how_overdue_the_next_message_is():
    """Nothing is late while all that is due was taken."""
    bucket = Bucket(capacity=10)
    sender = OpenLoopSender(spec(), bucket)
    sender.step(1000.5)
    assert sender.progress(1000.5).late == pytest.approx(0.5 - 0.105)
    bucket.capacity = 10**9
    sender.step(1000.5)
    assert sender.progress(1000.5).late == 0


def test_a_generator_slowed_on_purpose_is_late_and_not_blocked():
    """The limit is the generator's: the source is not blocked."""
    bucket = Bucket()
    reported = run(OpenLoopSender(spec(rate=1000, seconds=1, limit=100), bucket), cancel_at=1001)
    assert all(progress.accepted <= 100 * (progress.at - 1000) for progress in reported)
    assert reported[-1].accepted > 90
    assert reported[-1].blocked == 0
    assert reported[-1].late > 0.8


def test_a_cancelled_load_leaves_the_rest_unsent():
    """Messages that the source took stay counted; the last progress report is done."""
    bucket = Bucket()
    last = run(OpenLoopSender(spec(), bucket), cancel_at=1000.5)[-1]
    assert last.done
    assert 0 < last.accepted < 100
    assert last.accepted == len(bucket.messages)


def test_confirmations_that_never_come_are_not_waited_for_without_end():
    """The last progress report comes after the timeout and does not count the messages as confirmed."""
    clock = ManualClock()
    last = run(OpenLoopSender(spec(), Bucket(confirms=False)), clock)[-1]
    assert (last.done, last.accepted, last.confirmed) == (True, 100, 0)
    assert clock.now < 1001 + 2 * STALL_TIMEOUT_S


def test_a_source_that_takes_nothing_more_ends_the_load():
    """The load ends some time after its last message was due."""
    clock = ManualClock()
    last = run(OpenLoopSender(spec(), Bucket(capacity=30)), clock)[-1]
    assert (last.done, last.accepted, last.confirmed) == (True, 30, 30)
    assert clock.now > 1001 + STALL_TIMEOUT_S


def test_an_earlier_load_is_not_counted():
    """Counts begin with the load, whatever the client had sent before."""
    bucket = Bucket()
    run(OpenLoopSender(spec(), bucket))
    last = run(OpenLoopSender(spec(begin=2000.0), bucket), ManualClock(2000.0))[-1]
    assert (last.accepted, last.confirmed) == (100, 100)


def test_progress_is_reported_often_enough_and_not_more_often():
    """About twenty times a second while counts change, and a few times while they do not."""
    assert 20 <= len(run(OpenLoopSender(spec(rate=1000), Bucket()))) <= 25
    assert 4 <= len(run(OpenLoopSender(spec(rate=0.4, seconds=4.0), Bucket()), cancel_at=1001)) <= 6


def test_the_maximal_lateness_is_reported_even_after_the_sender_has_caught_up():
    """A process that stalls sends all that is due at once and is on time again; `max_late` still shows the stall."""
    sender = OpenLoopSender(spec(rate=100, seconds=2), Bucket())
    while sender.step(1001.5):
        pass
    progress = sender.progress(1001.5)
    assert progress.late == 0
    assert progress.max_late == pytest.approx(1.495)


class Slow(Bucket):
    """A client that waits for its source a hundredth of a second in every `send`."""

    waited = 0.0

    def send(self, messages):
        self.waited += 0.01
        return super().send(messages)


def test_the_time_that_a_client_waited_counts_as_blocked():
    """Only since the load began, not what it had waited before."""
    client = Slow()
    client.waited = 5.0
    sender = OpenLoopSender(spec(rate=100, seconds=1), client)
    for now in (1000.2, 1000.4, 1000.6):
        sender.step(now)
    assert sender.progress(1000.6).blocked == pytest.approx(0.03)


def test_a_wait_of_the_client_while_its_source_is_blocked_counts_once():
    """A slow generator is not excused by waits of its source that count twice."""
    client = Slow(capacity=10)
    sender = OpenLoopSender(spec(rate=100, seconds=1), client)
    for now in (1000.2, 1000.25, 1000.3):
        sender.step(now)
        assert sender.progress(now + 0.04).blocked == pytest.approx(now + 0.04 - 1000.2)
    client.capacity = 10**9
    sender.step(1000.4)
    assert sender.progress(1000.5).blocked == pytest.approx(0.2 + 0.01)


def test_a_source_that_continues_to_confirm_is_waited_for():
    """However long the last confirmations take, as long as each comes before the timeout."""
    clock = ManualClock()

    class Hesitant(Bucket):
        def confirmed(self):
            """One message every 0.4 s."""
            return min(len(self.messages), int((clock.now - 1000) / 0.4)), 0

    last = run(OpenLoopSender(spec(rate=100, seconds=0.5), Hesitant()), clock)[-1]
    assert clock.now > 1000 + 50 * 0.4 > 1000 + STALL_TIMEOUT_S
    assert (last.confirmed, last.failed) == (50, 0)


def test_time_blocked_counts_from_the_last_moment_on_time():
    """What a source did before the generator caught up does not explain a later lateness."""
    bucket = Bucket(capacity=10)
    sender = OpenLoopSender(spec(seconds=10.0), bucket)
    sender.step(1000.5)
    bucket.capacity = 10**9
    sender.step(1001.0)
    sender.step(1001.0)
    assert sender.progress(1001.0).blocked == pytest.approx(0.5)
    late = sender.progress(1002.0)
    assert late.late == pytest.approx(1.0, abs=0.02)
    assert late.blocked == pytest.approx(0.5)
    assert late.blocked_late == 0
    assert late.stalled == pytest.approx(late.late)


def test_lateness_that_the_source_caused_is_no_stall():
    """It is as long as the source took nothing."""
    bucket = Bucket(capacity=10)
    sender = OpenLoopSender(spec(seconds=10.0), bucket)
    sender.step(1000.02)
    sender.progress(1000.02)
    sender.step(1000.15)
    sender.progress(1003.0)
    bucket.capacity = 10**9
    sender.step(1003.0)
    sender.step(1003.0)
    progress = sender.progress(1003.0)
    assert progress.max_late > 2.5
    assert progress.stalled < 0.2


def test_progress_carries_what_a_traced_client_records():
    """From the begin of the load on, and once."""
    reported = run(OpenLoopSender(replace(spec(), traced=True, producer=3), RecordingBucket()))
    spans = [span for progress in reported if progress.trace is not None for span in progress.trace.spans]
    assert {(span.worker, span.activity) for span in spans} == {("sender 3", "serialize")}
    assert sum(span.messages for span in spans) == 100


def test_a_client_that_is_not_traced_any_more_records_nothing():
    """The next load takes its recorder away."""
    bucket = RecordingBucket()
    run(OpenLoopSender(replace(spec(), traced=True), bucket))
    assert all(progress.trace is None for progress in run(OpenLoopSender(spec(), bucket)))


def test_the_sum_of_several_workers_has_the_spans_of_all():
    """Also those from before the last of them reported."""
    together, spans = SendProgressSum(2), [Span(f"sender {number}", "serialize", 0, 1) for number in (0, 1)]
    parts = [
        replace(run(OpenLoopSender(replace(spec(), producer=number), Bucket()))[-1], trace=TraceEvents([spans[number]]))
        for number in (0, 1)
    ]
    assert together.add(parts[0]) is None
    assert together.add(parts[1]).trace.spans == spans
    assert together.add(replace(parts[0], trace=None)).trace is None
