"""Sends one order's messages through a source's client as they fall due: the loop that every load runs."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from bench.message import Writer
from bench.order import Order, Sent

MOST_MESSAGES, MOST_BYTES = 4096, 4 * 10**6
"""Of one step: bounds the memory of what waits, and the time in which nothing else of the process runs."""
DEADLINE = 10.0
"""Seconds in which the source takes or confirms something; what it has not by then, it never will."""
LONGEST_STEP = 0.02
"""Seconds; a client in whose `send` a chunk takes longer (one file a message) is given smaller ones."""
SHORTEST_PAUSE, SETTLING_PAUSE, LONGEST_PAUSE = 0.001, 0.005, 0.05
"""Seconds: a client with something to confirm is asked sooner than one without."""
TELL_EVERY, TELL_AT_LEAST_EVERY = 0.05, 0.25
"""Seconds between two accounts: while something changes, and while nothing does."""


class Client(Protocol):
    """What a pump needs of a source's Sender (bench.faces)."""

    def send(self, messages: Sequence[bytes]) -> int: ...

    def confirmed(self) -> tuple[int, int]: ...


class Pump:
    """One order under way, in an open loop: due times are fixed by the order and do not move when a step comes late.

    A message is written once, when it is first offered: `sent` in its header is that moment, even if the source takes it later.
    Blocked is the time from a step of which the source left something to the next step of which it left nothing.
    """

    def __init__(self, order: Order, client: Client) -> None:
        self._order, self._client, self._schedule = order, client, order.schedule()
        self._writer = Writer(
            run=order.run, producer=order.producer, size=order.message_bytes, cost=order.cpu_seconds, entropy=order.entropy
        )
        self._chunk = self._largest_chunk = max(1, min(MOST_MESSAGES, MOST_BYTES // order.message_bytes))
        self._total = self._schedule.count(order.seconds)
        self._waiting: Sequence[bytes] = ()
        self._accepted, self._last_taken = 0, order.begin
        self._blocked, self._blocked_since = 0.0, -1.0
        self._confirmed_before, self._failed_before = client.confirmed()

    @property
    def blocked(self) -> bool:
        """Whether the source left something of the last step."""
        return self._blocked_since >= 0

    def step(self, now: float) -> None:
        """Offer the source what is due at `now`, or else what it did not take before: one chunk at most."""
        if not self._waiting:
            self._waiting = self._written(now)
        if self._waiting:
            self._account(self._client.send(self._waiting), now)

    def took(self, seconds: float) -> None:
        """Fit the next chunk to how long the last step took, so that a step seldom takes longer than it should."""
        if seconds > LONGEST_STEP:
            self._chunk = max(1, self._chunk // 2)
        elif seconds < LONGEST_STEP / 4:
            self._chunk = min(self._largest_chunk, self._chunk * 2)

    def pause(self, now: float) -> float:
        """Seconds until the next step has something to do; 0 when it has already."""
        if self.blocked:
            return SHORTEST_PAUSE
        left = self._order.begin + self._next() - now
        if left <= 0 or self._accepted == self._total:
            return 0.0
        return max(SHORTEST_PAUSE, min(LONGEST_PAUSE if self.settled() else SETTLING_PAUSE, left))

    def over(self, now: float) -> bool:
        """Whether everything was taken; or all is due, and the source has taken nothing for too long."""
        quiet_since = max(self._last_taken, self._order.begin + self._order.seconds)
        return self._accepted == self._total or now > quiet_since + DEADLINE

    def settled(self) -> bool:
        """Whether the source has confirmed or refused all that it took."""
        return sum(self._settled()) >= self._accepted

    def sent(self, now: float, *, done: bool = False) -> Sent:
        """How far the order is."""
        confirmed, failed = self._settled()
        return Sent(
            run=self._order.run,
            producer=self._order.producer,
            at=now,
            accepted=self._accepted,
            confirmed=confirmed,
            failed=failed,
            late=self._late(now),
            blocked=self._blocked + (now - self._blocked_since if self.blocked else 0.0),
            done=done,
        )

    def _written(self, now: float) -> Sequence[bytes]:
        """The next chunk of what is due and not written yet."""
        elapsed, first = now - self._order.begin, self._accepted
        last = min(self._schedule.count(elapsed), first + self._chunk)
        if self._order.limit is not None:
            last = min(last, int(self._order.limit * elapsed))
        if last <= first:
            return ()
        return self._writer.write(first, self._order.begin + self._schedule.due(first, last), now)

    def _account(self, taken: int, now: float) -> None:
        self._accepted += taken
        self._waiting = self._waiting[taken:]
        if taken:
            self._last_taken = now
        if self._waiting and not self.blocked:
            self._blocked_since = now
        elif not self._waiting and self.blocked:
            self._blocked += now - self._blocked_since
            self._blocked_since = -1.0

    def _next(self) -> float:
        """When the next message may be sent, in seconds after the order's begin."""
        due = self._next_due()
        return due if self._order.limit is None else max(due, (self._accepted + 1) / self._order.limit)

    def _next_due(self) -> float:
        return float(self._schedule.due(self._accepted, self._accepted + 1)[0])

    def _late(self, now: float) -> float:
        if self._accepted == self._total:
            return 0.0
        return max(0.0, now - self._order.begin - self._next_due())

    def _settled(self) -> tuple[int, int]:
        """(confirmed, failed) of this order; never more than it sent, though an earlier one's are confirmed late."""
        confirmed, failed = self._client.confirmed()
        failed = min(failed - self._failed_before, self._accepted)
        return min(confirmed - self._confirmed_before, self._accepted - failed), failed


def drive(
    pump: Pump,
    tell: Callable[[Sent], None],
    halted: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Run an order to its end: until all is taken, `halted`, or the source takes nothing more; the last `Sent` told is `done`.

    What was taken is waited for until it is confirmed or refused, or the deadline has passed. `halted` is called in every
    turn and may raise: that ends the order at once.
    """
    account = _Account(pump, tell)
    while not (halted() or pump.over(clock())):
        began = clock()
        pump.step(began)
        pump.took(clock() - began)
        account.give(clock())
        sleep(pump.pause(clock()))
    deadline = clock() + DEADLINE
    while not pump.settled() and clock() < deadline:
        halted()
        account.give(clock())
        sleep(SHORTEST_PAUSE)
    tell(pump.sent(clock(), done=True))


class _Account:
    """Tells how far a pump is, often enough and not more often."""

    def __init__(self, pump: Pump, tell: Callable[[Sent], None]) -> None:
        self._pump, self._tell = pump, tell
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
