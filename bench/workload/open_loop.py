"""The open loop of every load generator: messages go to a source's client when they are due."""

import time
from collections.abc import Callable

from msgspec.structs import replace

from bench.model.trace import TraceEvents
from bench.system import clock as clocks
from bench.workload.batch_writer import BatchWriter, BlockingClient, SourceClient, start_recorder
from bench.workload.client_statistics import StatisticsSampler
from bench.workload.load_spec import LoadSpec, SendProgress
from bench.workload.span_recorder import join_events

STALL_TIMEOUT_S = 10.0
"""A source that takes or confirms nothing for so long will not do so any more."""
CONFIRM_TIMEOUT_S = 60.0
"""The last confirmations are waited for at most so long."""
MAX_STEP_S = 0.02
"""A client whose `send` takes longer (one file a message) gets smaller batches."""
MAX_TURN_S = 0.005
"""The longest sequence of steps before anything else of the process gets its turn."""
MIN_PAUSE_S, CONFIRMING_PAUSE_S, MAX_PAUSE_S = 0.001, 0.005, 0.05
"""A client with unconfirmed messages is polled more often than one without."""
CANCEL_CHECK_INTERVAL_S = 0.01
"""One check takes 0.05 ms of CPU, a tenth of a turn."""
MIN_BATCH_DIVISOR = 16
"""A step waits for the shortest pause as long as less than 1/16 of a batch is due: steps of a few messages cost more
than the messages (0.6 of a core at 100,000/s of 100 B), and on one machine the system under test pays for it."""
FIRST_BATCH_DIVISOR = 16
"""The first batch is 1/16 of the largest: a slow source (a disk may create 1,400 files/s) takes a second for that."""
ON_TIME_S = 0.05
"""A generator is on time up to this lateness."""
PROGRESS_INTERVAL_S, IDLE_PROGRESS_INTERVAL_S = 0.05, 0.25
"""Between two progress reports: while counts change, and while they do not."""


class OpenLoopSender:
    """A load specification under way. Due times are fixed in advance and do not move when a step comes late.

    A message is written once, when it is first offered: the send time in its header is that moment, even if the source
    takes the message later.
    """

    def __init__(self, spec: LoadSpec, client: SourceClient) -> None:
        self._spec, self._schedule = spec, spec.schedule()
        self._writer = BatchWriter(spec, client)
        self._batch_size = max(1, self._writer.max_messages // FIRST_BATCH_DIVISOR)
        self._total = self._schedule.count(spec.seconds)
        self._accepted, self._last_taken = 0, spec.begin
        self._confirmations = _Confirmations(client)
        self._blocked = _BlockedTime(client if isinstance(client, BlockingClient) else None)
        self._lateness = _Lateness(self._blocked)
        self._spans = start_recorder(spec, client)
        self._statistics = StatisticsSampler(
            client if spec.traced else None, f"sender {spec.producer}", ahead_s=clocks.seconds_ahead(spec.clock)
        )

    def step(self, now: float) -> bool:
        """Offer the source what it left before, or else the next batch due; return False if there was nothing."""
        if not self._writer.pending:
            self._write_due(now)
        if not self._writer.pending:
            return False
        self._blocked.add_client_wait()
        taken = self._writer.offer()
        self._accepted += taken
        if taken:
            self._last_taken = now
        self._blocked.update(now, pending=bool(self._writer.pending))
        return True

    def adapt_batch_size(self, step_seconds: float) -> None:
        """Choose the next batch's size from the last step's duration, so that steps seldom exceed MAX_STEP_S."""
        if step_seconds > MAX_STEP_S:
            self._batch_size = max(1, self._batch_size // 2)
        elif step_seconds < MAX_STEP_S / 4:
            self._batch_size = min(self._writer.max_messages, self._batch_size * 2)

    def next_pause(self, now: float) -> float:
        """Return the seconds until the next step is worth its cost; 0 if it is already."""
        if self._blocked.is_blocked:
            return MIN_PAUSE_S
        if self._accepted == self._total:
            return 0.0
        left = self._spec.begin + self._next_offset() - now
        if left <= 0:
            enough = self._count_due(now) - self._accepted >= self._batch_size // MIN_BATCH_DIVISOR
            return 0.0 if enough else MIN_PAUSE_S
        usual = CONFIRMING_PAUSE_S if self.unconfirmed() > 0 else MAX_PAUSE_S
        return max(MIN_PAUSE_S, left if left < 2 * usual else usual)  # one pause, not two: each costs 0.2 ms of CPU

    def is_finished(self, now: float) -> bool:
        """Return True if the source has taken everything, or has taken nothing for too long after all was due."""
        quiet_since = max(self._last_taken, self._spec.begin + self._spec.seconds)
        return self._accepted == self._total or now > quiet_since + STALL_TIMEOUT_S

    def unconfirmed(self) -> int:
        """Return how many messages the source took and has neither confirmed nor refused yet."""
        return self._accepted - sum(self._confirmations.count(self._accepted))

    def progress(self, now: float, *, done: bool = False) -> SendProgress:
        """Return how much is sent by `now`."""
        confirmed, failed = self._confirmations.count(self._accepted)
        self._blocked.add_client_wait()
        late = self._late(now)
        self._lateness.update(now, late)
        return SendProgress(
            run=self._spec.run,
            producer=self._spec.producer,
            at=now,
            accepted=self._accepted,
            confirmed=confirmed,
            failed=failed,
            late=late,
            blocked=self._blocked.seconds(now),
            done=done,
            max_late=self._lateness.longest,
            blocked_late=self._lateness.blocked(now),
            stalled=self._lateness.stalled,
        )

    def take_trace(self) -> TraceEvents | None:
        """Return what the client has recorded since the last call, and its statistics; None if there is nothing."""
        return join_events((self._spans.take(), self._statistics.take()))

    def _write_due(self, now: float) -> None:
        """Write the next batch of what is due."""
        first = self._accepted
        last = min(self._count_due(now), first + self._batch_size)
        if last > first:
            due = self._spec.begin + self._schedule.due(first, last)
            self._lateness.update(now, now - float(due[0]))
            self._writer.write(first, due, now)

    def _count_due(self, now: float) -> int:
        """Return how many messages may be sent by `now`: those due, or fewer if the generator is slowed on purpose."""
        elapsed = now - self._spec.begin
        due = self._schedule.count(elapsed)
        return due if self._spec.limit is None else min(due, int(self._spec.limit * elapsed))

    def _next_offset(self) -> float:
        """Return when the next message may be sent, in seconds after `begin`."""
        due = self._next_due_offset()
        return due if self._spec.limit is None else max(due, (self._accepted + 1) / self._spec.limit)

    def _next_due_offset(self) -> float:
        return float(self._schedule.due(self._accepted, self._accepted + 1)[0])

    def _late(self, now: float) -> float:
        if self._accepted == self._total:
            return 0.0
        return max(0.0, now - self._spec.begin - self._next_due_offset())


class _Confirmations:
    """A client's confirmations since a load specification began; what it confirmed before does not count."""

    def __init__(self, client: SourceClient) -> None:
        self._client = client
        self._confirmed_before, self._failed_before = client.confirmed()

    def count(self, accepted: int) -> tuple[int, int]:
        """Return (confirmed, failed); never more than `accepted`, even if messages sent before are confirmed late."""
        confirmed, failed = self._client.confirmed()
        failed = min(failed - self._failed_before, accepted)
        return min(confirmed - self._confirmed_before, accepted - failed), failed


class _BlockedTime:
    """The time in which a source did not take more.

    It is the time from a step of which the source left something to the next step of which it left nothing, and outside
    of that the time that a blocking client waited for its source within `send`.
    """

    def __init__(self, client: BlockingClient | None) -> None:
        self._client = client
        self._client_waited = client.waited if client is not None else 0.0
        self._total, self._since = 0.0, -1.0

    @property
    def is_blocked(self) -> bool:
        return self._since >= 0

    def seconds(self, now: float) -> float:
        return self._total + (now - self._since if self.is_blocked else 0.0)

    def update(self, now: float, *, pending: bool) -> None:
        """Record whether the step at `now` left messages pending."""
        if pending and not self.is_blocked:
            self._since = now
        elif not pending and self.is_blocked:
            self._total += now - self._since
            self._since = -1.0
        self.add_client_wait()

    def add_client_wait(self) -> None:
        """Add what the client has waited since the last call, unless that time counts already."""
        if self._client is not None:
            if not self.is_blocked:
                self._total += self._client.waited - self._client_waited
            self._client_waited = self._client.waited


class _Lateness:
    """The longest lateness, and the longest part of one that the source did not cause by taking no more."""

    def __init__(self, blocked: _BlockedTime) -> None:
        self._blocked, self._blocked_on_time = blocked, 0.0
        self.longest = self.stalled = 0.0

    def update(self, now: float, late: float) -> None:
        """Take in the lateness at `now`."""
        if late <= ON_TIME_S:
            self._blocked_on_time = self._blocked.seconds(now)
        self.longest = max(self.longest, late)
        self.stalled = max(self.stalled, late - self.blocked(now))

    def blocked(self, now: float) -> float:
        """Return the seconds since the generator was last on time in which the source did not take more."""
        return self._blocked.seconds(now) - self._blocked_on_time


def run_load(
    sender: OpenLoopSender,
    report: Callable[[SendProgress], None],
    is_cancelled: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Run a sender to its end: until the source has taken all, takes nothing more, or the load is cancelled.

    Messages that the source took are waited for until it confirms or refuses them, or a timeout has passed.

    Args:
        sender: The messages and their client; nothing else may use them meanwhile.
        report: Called with the progress; the last one is `done`.
        is_cancelled: Called often; it may raise, which ends the load at once.
        clock: CLOCK_MONOTONIC seconds of the machine that the specification's clock refers to.
        sleep: Waits for so many seconds.
    """

    def report_traced(progress: SendProgress) -> None:
        trace = sender.take_trace()
        report(progress if trace is None else replace(progress, trace=trace))

    reporter, checked = _Reporter(sender, report_traced), float("-inf")
    while not sender.is_finished(now := clock()):
        if now >= checked + CANCEL_CHECK_INTERVAL_S:
            checked = now
            if is_cancelled():
                break
        pause = _take_turn(sender, clock)
        reporter.report(clock())
        sleep(pause)
    quiet, end, unconfirmed = clock() + STALL_TIMEOUT_S, clock() + CONFIRM_TIMEOUT_S, -1
    while (left := sender.unconfirmed()) > 0 and clock() < min(quiet, end):
        if left != unconfirmed:
            quiet, unconfirmed = clock() + STALL_TIMEOUT_S, left
        is_cancelled()
        reporter.report(clock())
        sleep(MIN_PAUSE_S)
    report_traced(sender.progress(clock(), done=True))


def _take_turn(sender: OpenLoopSender, clock: Callable[[], float]) -> float:
    """Make steps until nothing is left to do or the turn is over; return the seconds until the next turn."""
    now = clock()
    end = now + MAX_TURN_S
    while True:
        began = now
        stepped = sender.step(began)
        now = clock()
        sender.adapt_batch_size(now - began)
        pause = sender.next_pause(now)
        if pause > 0 or not stepped or now >= end or sender.is_finished(now):
            return pause


class _Reporter:
    """A limit on how often a sender's progress is reported."""

    def __init__(self, sender: OpenLoopSender, report: Callable[[SendProgress], None]) -> None:
        self._sender, self._report = sender, report
        self._checked = self._reported = float("-inf")
        self._last = (0, 0, 0)

    def report(self, now: float) -> None:
        """Report the progress if it changed and an interval has passed, or if nothing was reported for long."""
        if now < self._checked + PROGRESS_INTERVAL_S:
            return
        self._checked, progress = now, self._sender.progress(now)
        counts = (progress.accepted, progress.confirmed, progress.failed)
        if counts != self._last or now >= self._reported + IDLE_PROGRESS_INTERVAL_S:
            self._reported, self._last = now, counts
            self._report(progress)
