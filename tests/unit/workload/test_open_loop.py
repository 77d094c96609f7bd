"""A pump offers what is due, no more and no later, and says truly how far it is."""

import numpy as np
import pytest

from bench.model.message_codec import make_filler, read
from bench.workload.batch_writer import MAX_MESSAGES
from bench.workload.load_spec import LoadSpec
from bench.workload.open_loop import DEADLINE, FIRST_PART, OpenLoopSender, run_load


class Bucket:
    """A client that takes what it has room for and confirms it at once, as long as it confirms at all."""

    def __init__(self, room=10**9, confirms=True):
        self.room, self.confirms, self.messages, self.calls = room, confirms, [], 0

    def send(self, messages):
        taken = messages[: max(0, self.room - len(self.messages))]
        self.messages += taken
        self.calls += 1
        return len(taken)

    def confirmed(self):
        return (len(self.messages) if self.confirms else 0), 0


class Clock:
    """Time that passes only in sleep."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += max(seconds, 1e-4)


def spec(rate=100.0, seconds=1.0, limit=None, begin=1000.0):
    return LoadSpec(7, rate, begin, seconds, message_bytes=100, cpu_seconds=0.0, entropy=0.5, limit=limit)


def driven(pump, clock=None, until=float("inf")):
    """What was told when the pump was driven to its end, or halted at a time."""
    clock, told = clock or Clock(), []
    run_load(pump, told.append, lambda: clock.now >= until, clock, clock.sleep)
    return told


def test_nothing_is_sent_before_it_is_due():
    """The first message is due half an interval after the order's begin."""
    bucket = Bucket()
    pump = OpenLoopSender(spec(), bucket)
    pump.step(1000.0049)
    assert bucket.messages == []
    pump.step(1000.0051)
    assert len(bucket.messages) == 1


def test_a_late_step_sends_all_that_is_due_by_then():
    """Due times do not move when the pump comes late."""
    bucket = Bucket()
    OpenLoopSender(spec(), bucket).step(1000.5)
    heads = read(bucket.messages, 100, make_filler(100, 0.5))
    assert heads.seq.tolist() == list(range(50))
    assert np.allclose(heads.due, 1000 + (np.arange(50) + 0.5) / 100)
    assert np.allclose(heads.sent, 1000.5)


def test_a_step_is_bounded():
    """However much is due, one step offers one chunk: a small one first, and larger ones while steps are quick."""
    bucket = Bucket()
    pump, taken = OpenLoopSender(spec(rate=1e6), bucket), []
    for _ in range(8):
        pump.step(1001)
        pump.took(0)
        taken.append(len(bucket.messages) - sum(taken))
    assert taken[0] == MAX_MESSAGES // FIRST_PART
    assert taken == sorted(taken)
    assert taken[-1] == MAX_MESSAGES


def test_a_step_that_took_long_makes_the_next_one_smaller():
    """A slow client is not given more at once than it can take in a moment."""
    bucket = Bucket()
    pump = OpenLoopSender(spec(rate=1e6), bucket)
    pump.took(0.1)
    pump.step(1001)
    assert len(bucket.messages) == MAX_MESSAGES // FIRST_PART // 2


@pytest.mark.parametrize("rate", [0.05, 3.0, 1234.5, 1e6], ids="{:g} per s".format)
def test_an_order_is_sent_in_full(rate):
    """Every message goes out once, in order, and the last account says so."""
    bucket, seconds = Bucket(), max(0.02, 2 / rate)
    last = driven(OpenLoopSender(spec(rate, seconds), bucket))[-1]
    assert last.done
    assert last.accepted == last.confirmed == len(bucket.messages) == round(rate * seconds)
    assert read(bucket.messages, 100, make_filler(100, 0.5)).seq.tolist() == list(range(last.accepted))


def test_what_the_source_does_not_take_is_offered_again():
    """Back-pressure loses nothing and repeats nothing."""
    bucket = Bucket(room=10)
    pump = OpenLoopSender(spec(), bucket)
    pump.step(1000.5)
    bucket.room = 10**9
    pump.step(1000.6)
    assert read(bucket.messages, 100, make_filler(100, 0.5)).seq.tolist() == list(range(50))


def test_blocked_counts_from_what_was_left_to_what_was_taken_in_full():
    """The time in which the source did not take more is told, also while it lasts."""
    bucket = Bucket(room=10)
    pump = OpenLoopSender(spec(), bucket)
    pump.step(1000.5)
    assert pump.sent(1000.6).blocked == pytest.approx(0.1)
    bucket.room = 10**9
    pump.step(1000.7)
    assert pump.sent(1000.9).blocked == pytest.approx(0.2)


def test_late_is_how_overdue_the_next_message_is():
    """Nothing is late while all that is due was taken."""
    bucket = Bucket(room=10)
    pump = OpenLoopSender(spec(), bucket)
    pump.step(1000.5)
    assert pump.sent(1000.5).late == pytest.approx(0.5 - 0.105)
    bucket.room = 10**9
    pump.step(1000.5)
    assert pump.sent(1000.5).late == 0


def test_a_generator_slowed_on_purpose_is_late_and_not_blocked():
    """Its limit is its own: the source is not blamed."""
    bucket = Bucket()
    told = driven(OpenLoopSender(spec(rate=1000, seconds=1, limit=100), bucket), until=1001)
    assert all(sent.accepted <= 100 * (sent.at - 1000) for sent in told)
    assert told[-1].accepted > 90
    assert told[-1].blocked == 0
    assert told[-1].late > 0.8


def test_a_halt_leaves_the_rest_unsent():
    """What was taken stays counted; the last account is done."""
    bucket = Bucket()
    last = driven(OpenLoopSender(spec(), bucket), until=1000.5)[-1]
    assert last.done
    assert 0 < last.accepted < 100
    assert last.accepted == len(bucket.messages)


def test_what_is_never_confirmed_is_not_waited_for_without_end():
    """The last account comes after the deadline and does not count it as confirmed."""
    clock = Clock()
    last = driven(OpenLoopSender(spec(), Bucket(confirms=False)), clock)[-1]
    assert (last.done, last.accepted, last.confirmed) == (True, 100, 0)
    assert clock.now < 1001 + 2 * DEADLINE


def test_a_source_that_takes_nothing_more_ends_the_order():
    """The order is over some time after its last message was due."""
    clock = Clock()
    last = driven(OpenLoopSender(spec(), Bucket(room=30)), clock)[-1]
    assert (last.done, last.accepted, last.confirmed) == (True, 30, 30)
    assert clock.now > 1001 + DEADLINE


def test_an_earlier_order_is_not_counted():
    """Counts begin with the order, whatever the client had sent before."""
    bucket = Bucket()
    driven(OpenLoopSender(spec(), bucket))
    last = driven(OpenLoopSender(spec(begin=2000.0), bucket), Clock(2000.0))[-1]
    assert (last.accepted, last.confirmed) == (100, 100)


def test_accounts_come_often_enough_and_not_more_often():
    """Some twenty a second while something changes, and a few while nothing does."""
    assert 20 <= len(driven(OpenLoopSender(spec(rate=1000), Bucket()))) <= 25
    assert 4 <= len(driven(OpenLoopSender(spec(rate=0.4, seconds=4.0), Bucket()), until=1001)) <= 6


def test_the_latest_message_is_told_even_when_the_turn_that_was_late_has_caught_up():
    """A process that stalls sends all that is due at once, and is on time again; that it was not is still told."""
    pump = OpenLoopSender(spec(rate=100, seconds=2), Bucket())
    while pump.step(1001.5):
        pass
    sent = pump.sent(1001.5)
    assert sent.late == 0
    assert sent.max_late == pytest.approx(1.495)


class Slow(Bucket):
    """A client that waits for its source a hundredth of a second in every `send`."""

    waited = 0.0

    def send(self, messages):
        self.waited += 0.01
        return super().send(messages)


def test_what_a_client_waited_counts_as_blocked():
    """Since the order began, and not what it had waited before."""
    client = Slow()
    client.waited = 5.0
    pump = OpenLoopSender(spec(rate=100, seconds=1), client)
    for now in (1000.2, 1000.4, 1000.6):
        pump.step(now)
    assert pump.sent(1000.6).blocked == pytest.approx(0.03)


def test_what_a_client_waits_while_its_source_leaves_something_counts_once():
    """A generator that is slow is not excused by its source's waits, counted twice."""
    client = Slow(room=10)
    pump = OpenLoopSender(spec(rate=100, seconds=1), client)
    for now in (1000.2, 1000.25, 1000.3):
        pump.step(now)
        assert pump.sent(now + 0.04).blocked == pytest.approx(now + 0.04 - 1000.2)
    client.room = 10**9
    pump.step(1000.4)
    assert pump.sent(1000.5).blocked == pytest.approx(0.2 + 0.01)


def test_a_source_that_goes_on_confirming_is_waited_for():
    """However long the last confirmations take, as long as each comes before the deadline."""
    clock = Clock()

    class Hesitant(Bucket):
        def confirmed(self):
            """One message every 0.4 s."""
            return min(len(self.messages), int((clock.now - 1000) / 0.4)), 0

    last = driven(OpenLoopSender(spec(rate=100, seconds=0.5), Hesitant()), clock)[-1]
    assert clock.now > 1000 + 50 * 0.4 > 1000 + DEADLINE
    assert (last.confirmed, last.failed) == (50, 0)
