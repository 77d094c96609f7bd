"""Sends one order's messages through a source's client as they fall due: the loop that every load runs."""

import time
from collections.abc import Callable

from bench.workload.batch_writer import BatchWriter, BlockingClient, SourceClient
from bench.workload.load_spec import LoadSpec, SendProgress

DEADLINE, LAST_DEADLINE = 10.0, 60.0
"""Seconds in which the source takes or confirms something, and in which it confirms the last; after that, it never will."""
MAX_STEP = 0.02
"""Seconds; a client in whose `send` a chunk takes longer (one file a message) is given smaller ones."""
MAX_TURN = 0.005
"""Seconds of steps one after the other, before anything else of the process has its turn."""
MIN_PAUSE, SETTLING_PAUSE, MAX_PAUSE = 0.001, 0.005, 0.05
"""Seconds: a client with something to confirm is asked sooner than one without."""
ASK_EVERY = 0.01
"""Seconds between two looks whether the order was halted: a look takes 0.05 ms of CPU, a tenth of a turn."""
WORTH_A_STEP = 16
"""Less than this part of a chunk is let grow for a shortest pause: steps of a few messages cost more than the messages (0.6 of a
core at 100,000/s of 100 B), and on one machine the system pays for it."""
FIRST_PART = 16
"""The first chunk is this part of the largest: a slow source (a disk may make 1,400 files a second) takes a second for that."""
TELL_EVERY, TELL_AT_LEAST_EVERY = 0.05, 0.25
"""Seconds between two accounts: while something changes, and while nothing does."""


class OpenLoopSender:
    """One order under way, in an open loop: due times are fixed by the order and do not move when a step comes late.

    A message is written once, when it is first offered: `sent` in its header is that moment, even if the source takes it later.
    Blocked is the time from a step of which the source left something to the next step of which it left nothing, and the time for
    which a client that waits for its source within a step says that it has.
    """

    def __init__(self, spec: LoadSpec, client: SourceClient) -> None:
        self._spec, self._client, self._schedule = spec, client, spec.schedule()
        self._outlet = BatchWriter(spec, client)
        self._chunk = max(1, self._outlet.most // FIRST_PART)
        self._total = self._schedule.count(spec.seconds)
        self._accepted, self._last_taken, self._latest = 0, spec.begin, 0.0
        self._blocked, self._blocked_since = 0.0, -1.0
        self._confirmed_before, self._failed_before = client.confirmed()
        self._waiting = client if isinstance(client, BlockingClient) else None
        self._waited = self._waiting.waited if self._waiting is not None else 0.0

    @property
    def blocked(self) -> bool:
        """Whether the source left something of the last step."""
        return self._blocked_since >= 0

    def step(self, now: float) -> bool:
        """Offer the source what is due at `now`, or else what it did not take before: one chunk at most; whether there was any."""
        if not self._outlet.waiting:
            self._write(now)
        if not self._outlet.waiting:
            return False
        self._count_waited()
        self._account(self._outlet.offer(), now)
        return True

    def took(self, seconds: float) -> None:
        """Fit the next chunk to how long the last step took, so that a step seldom takes longer than it should."""
        if seconds > MAX_STEP:
            self._chunk = max(1, self._chunk // 2)
        elif seconds < MAX_STEP / 4:
            self._chunk = min(self._outlet.most, self._chunk * 2)

    def pause(self, now: float) -> float:
        """Seconds until the next step has something to do; 0 when it has already."""
        if self.blocked:
            return MIN_PAUSE
        if self._accepted == self._total:
            return 0.0
        left = self._spec.begin + self._next() - now
        if left <= 0:
            return 0.0 if self._due(now) - self._accepted >= self._chunk // WORTH_A_STEP else MIN_PAUSE
        usual = MAX_PAUSE if self.settled() else SETTLING_PAUSE
        return max(
            MIN_PAUSE, left if left < 2 * usual else usual
        )  # rather one pause than two: each costs 0.2 ms of CPU

    def over(self, now: float) -> bool:
        """Whether everything was taken; or all is due, and the source has taken nothing for too long."""
        quiet_since = max(self._last_taken, self._spec.begin + self._spec.seconds)
        return self._accepted == self._total or now > quiet_since + DEADLINE

    def settled(self) -> bool:
        """Whether the source has confirmed or refused all that it took."""
        return self.left() <= 0

    def left(self) -> int:
        """How many of the messages that the source took it has neither confirmed nor refused yet."""
        return self._accepted - sum(self._settled())

    def sent(self, now: float, *, done: bool = False) -> SendProgress:
        """How far the order is."""
        confirmed, failed = self._settled()
        self._count_waited()
        return SendProgress(
            run=self._spec.run,
            producer=self._spec.producer,
            at=now,
            accepted=self._accepted,
            confirmed=confirmed,
            failed=failed,
            late=self._late(now),
            blocked=self._blocked + (now - self._blocked_since if self.blocked else 0.0),
            done=done,
            max_late=max(self._latest, self._late(now)),
        )

    def _write(self, now: float) -> None:
        """Have the next chunk of what is due wait."""
        first = self._accepted
        last = min(self._due(now), first + self._chunk)
        if last > first:
            due = self._spec.begin + self._schedule.due(first, last)
            self._latest = max(self._latest, now - float(due[0]))
            self._outlet.write(first, due, now)

    def _due(self, now: float) -> int:
        """How many messages may have been sent by now: those that are due, or fewer where the generator is slowed on purpose."""
        elapsed = now - self._spec.begin
        due = self._schedule.count(elapsed)
        return due if self._spec.limit is None else min(due, int(self._spec.limit * elapsed))

    def _account(self, taken: int, now: float) -> None:
        self._accepted += taken
        if taken:
            self._last_taken = now
        if self._outlet.waiting and not self.blocked:
            self._blocked_since = now
        elif not self._outlet.waiting and self.blocked:
            self._blocked += now - self._blocked_since
            self._blocked_since = -1.0
        self._count_waited()

    def _count_waited(self) -> None:
        """Count what the client has waited since the last call as blocked, unless that time is counted already."""
        if self._waiting is not None:
            if not self.blocked:
                self._blocked += self._waiting.waited - self._waited
            self._waited = self._waiting.waited

    def _next(self) -> float:
        """When the next message may be sent, in seconds after the order's begin."""
        due = self._next_due()
        return due if self._spec.limit is None else max(due, (self._accepted + 1) / self._spec.limit)

    def _next_due(self) -> float:
        return float(self._schedule.due(self._accepted, self._accepted + 1)[0])

    def _late(self, now: float) -> float:
        if self._accepted == self._total:
            return 0.0
        return max(0.0, now - self._spec.begin - self._next_due())

    def _settled(self) -> tuple[int, int]:
        """(confirmed, failed) of this order; never more than it sent, though an earlier one's are confirmed late."""
        confirmed, failed = self._client.confirmed()
        failed = min(failed - self._failed_before, self._accepted)
        return min(confirmed - self._confirmed_before, self._accepted - failed), failed


def run_load(
    pump: OpenLoopSender,
    send: Callable[[SendProgress], None],
    halted: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Run an order to its end: until all is taken, `halted`, or the source takes nothing more; the last `Sent` told is `done`.

    What was taken is waited for until it is confirmed or refused, or the deadline has passed. `halted` is called often and may
    raise: that ends the order at once.
    """
    account, asked = _Account(pump, send), float("-inf")
    while not pump.over(now := clock()):
        if now >= asked + ASK_EVERY:
            asked = now
            if halted():
                break
        pause = _turn(pump, clock)
        account.give(clock())
        sleep(pause)
    quiet, last, left = clock() + DEADLINE, clock() + LAST_DEADLINE, -1
    while not pump.settled() and clock() < min(quiet, last):
        if (now_left := pump.left()) != left:
            quiet, left = clock() + DEADLINE, now_left
        halted()
        account.give(clock())
        sleep(MIN_PAUSE)
    send(pump.sent(clock(), done=True))


def _turn(pump: OpenLoopSender, clock: Callable[[], float]) -> float:
    """Make steps until there is nothing to do or the turn is over; seconds until the next turn has something to do."""
    now = clock()
    end = now + MAX_TURN
    while True:
        began = now
        stepped = pump.step(began)
        now = clock()
        pump.took(now - began)
        pause = pump.pause(now)
        if pause > 0 or not stepped or now >= end or pump.over(now):
            return pause


class _Account:
    """Tells how far a pump is, often enough and not more often."""

    def __init__(self, pump: OpenLoopSender, send: Callable[[SendProgress], None]) -> None:
        self._pump, self._tell = pump, send
        self._asked = self._told = float("-inf")
        self._last = (0, 0, 0)

    def give(self, now: float) -> None:
        if now < self._asked + TELL_EVERY:
            return
        self._asked, sent = now, self._pump.sent(now)
        counts = (sent.accepted, sent.confirmed, sent.failed)
        if counts != self._last or now >= self._told + TELL_AT_LEAST_EVERY:
            self._told, self._last = now, counts
            self._tell(sent)
