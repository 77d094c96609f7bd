"""One trial: messages at one rate for a while; settle, measure a window, drain; the numbers that were seen.

Three counters are followed: offered, from the due times alone; sent, as the source confirms; processed, as the framework's
tallies say. Whether the rate was sustained is for the judge (bench.analysis.verdict). A trial is given up as soon as it cannot be
sustained any more; what was sent is still waited for, so that the tallies can be compared.
"""

import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import asdict

from bench.analysis.histogram import KINDS, Histogram, HistogramsPerSecond
from bench.analysis.time_series import TimeSeries
from bench.errors import HarnessError, ProcessDiedError
from bench.model.measurement import Ending, Latency, Measurement, Planned
from bench.runner.deployment import Deployment
from bench.services import preflight
from bench.storage.run_folder import now_text
from bench.telemetry.cpu import Probe, Snapshot
from bench.telemetry.resources import Account, ResourceUsage
from bench.workload.delivery_counts import DeliveryCounts, ProcessingReport
from bench.workload.load_spec import SendProgress
from bench.workload.processing import NO_RUN

LEAD = 0.1
"""Seconds between an order and its first due time."""
TICK = 0.05
ROW_EVERY, SHOW_EVERY = 0.1, 0.25
HOPELESS_LOSS = 0.25
IDLE_CORES = 0.15
"""A framework that uses less CPU than this is not working on a backlog."""
MAX_BACKLOG_BYTES = 2 * 10**9
"""A larger backlog has no place on the machine; what waits for its batch is no backlog."""


class TrialProgress(Struct, frozen=True):
    """What a trial looks like while it runs; rates over the last second or so, in messages/s."""

    planned: Planned
    phase: str
    elapsed: float
    offered: int
    sent: int
    processed: int


Show = Callable[[TrialProgress], None]


def run(deployed: Deployment, planned: Planned, drain: float, show: Show) -> Measurement:
    """Make one trial on a rig that stands idle; `drain` is the deadline of the drain in seconds."""
    trial = _Trial(deployed, planned, show)
    trial.start()
    ended = trial.through_the_window()
    trial.until_drained(drain)
    trial.look_at_the_site(ended)
    return trial.measurement(ended)


class _Trial:
    """The counters of a trial under way."""

    def __init__(self, deployed: Deployment, planned: Planned, show: Show) -> None:
        self._standing, self._planned, self._show = deployed, planned, show
        self._run = planned.number % 65535 + 1
        self._tally, self._stale, self._latencies = DeliveryCounts(), 0, HistogramsPerSecond()
        self._sent: SendProgress | None = None
        self._at_end: SendProgress | None = None
        self._rows = TimeSeries()
        self._servers = [child for child in deployed.env.supervisor.children if child.role == "source"]
        self._probe = Probe(deployed.env.supervisor)
        self._expense = ResourceUsage()
        self._note = ""
        self._dead: Ending | None = None
        self._started, self._shown = now_text(), 0.0
        self._still = False

    def start(self) -> None:
        planned = self._planned
        self._window_end = planned.settle + planned.window
        self._order = self._standing.spec(self._run, planned.rate, time.monotonic() + LEAD, self._window_end)
        self._schedule = self._order.schedule()
        self._standing.load.start(self._order)

    def through_the_window(self) -> Ending:
        """Watch until the window is over, or until it is clear that the rate is not sustained, or something died."""
        account: Account | None = None
        ended: Ending = "complete"
        while (now := self._look("settling" if account is None else "measuring")) < self._window_end:
            if self._dead:
                break
            if account is None and now >= self._planned.settle:
                account = Account(self._probe, self._standing.env.supervisor)
            if self._is_hopeless(now):
                ended = "hopeless"
                break
            time.sleep(TICK)
        if account is not None:
            self._expense = account.expense(alone=not self._standing.env.site.shared_machine)
        self._at_end = self._sent
        self._end = min(self._now(), self._window_end)
        if ended != "complete":
            self._standing.load.cancel()
        return self._dead or ended

    def until_drained(self, seconds: float) -> None:
        """Watch until everything sent was processed exactly, nothing moves any more, or the deadline is over."""
        interval = self._standing.framework.batch_interval
        deadline = time.monotonic() + seconds + 2 * interval
        moved, last = time.monotonic(), -1
        quiet_from: Snapshot | None = None
        while not self._dead and time.monotonic() < deadline:
            self._look("draining")
            if self._processed != last:
                moved, last, quiet_from = time.monotonic(), self._processed, None
            if self._done and self._exact:
                return
            quiet = time.monotonic() - moved
            if quiet > 1 and quiet_from is None:
                quiet_from = self._probe.snapshot()
            counted_all = self._processed >= self._confirmed
            if self._done and quiet > (1 + 2 * interval if counted_all else 10 + 5 * interval):
                self._still = counted_all or self._is_idle_since(quiet_from)
                if self._still:
                    return
            time.sleep(TICK)
        if self._dead:
            self._standing.load.cancel()

    def _is_idle_since(self, quiet_from: Snapshot | None) -> bool:
        """Whether the framework has not even tried: what it has not processed by then, it has lost."""
        if quiet_from is None or self._standing.env.site.elsewhere(self._standing.cell.framework):
            return False
        used = self._probe.snapshot().since(quiet_from)
        return used.framework < IDLE_CORES * used.seconds

    def look_at_the_site(self, ended: Ending) -> None:
        """Where not everything came through: what of the site died, or whose host is gone, which says nothing of a rate."""
        if ended == "complete" and self._done and self._exact and not self._dead:
            return
        missing = preflight.gaps(self._standing.env.site)
        for gap in missing:
            died: Ending = "source died" if gap.endpoint.startswith(preflight.SOURCES) else "framework died"
            self._dead, self._note = died if gap.refused else "host gone", str(gap)
        if missing:
            self._standing.load.cancel()

    def measurement(self, ended: Ending) -> Measurement:
        """What was seen."""
        tally, sent, at_end = self._tally, self._confirmed, self._at_end
        drained = self._done and (self._exact or self._still)
        lost, duplicated = self._losses()
        return Measurement(
            planned=self._planned,
            started=self._started,
            ended=self._dead or ended,
            batch_interval=self._standing.framework.batch_interval,
            seconds=self._now() + LEAD,
            offered=self._schedule.count(self._end),
            sent=sent,
            failed=self._sent.failed if self._sent else 0,
            processed=tally.count,
            lost=lost,
            duplicated=duplicated + self._stale,
            out_of_order=tally.out_of_order if self._standing.ordered else 0,
            corrupted=tally.corrupted,
            drained=drained,
            late=self._late(at_end),
            blocked=at_end.blocked if at_end else 0.0,
            cpu_requested_s=tally.cpu_requested_s,
            cpu_used_s=tally.cpu_used_s,
            from_due=_quantiles(tally.from_due),
            from_sent=_quantiles(tally.from_sent),
            processing=_quantiles(tally.processing),
            negative=tally.negative,
            clocks=self._standing.clocks,
            **asdict(self._expense),
            note=self._note,
            latencies=self._latencies.buckets(),
            series=self._rows.series(),
        )

    @property
    def _processed(self) -> int:
        return self._tally.count + self._tally.corrupted

    @property
    def _confirmed(self) -> int:
        return self._sent.confirmed if self._sent else 0

    @property
    def _done(self) -> bool:
        return self._sent is not None and self._sent.done

    @property
    def _exact(self) -> bool:
        return self._processed == self._confirmed and self._losses() == (0, 0)

    def _losses(self) -> tuple[int, int]:
        """(lost, duplicated) so far; a corrupted message is corrupted, not lost."""
        told = self._sent.by_producer() if self._sent else {}
        lost, duplicated = self._tally.against(told)
        holes = min(
            lost, duplicated, self._sent.failed if self._sent else 0
        )  # what was refused has left its number free
        return max(0, lost - holes - self._tally.corrupted), duplicated - holes

    def _late(self, told: SendProgress | None) -> float:
        """By how much the generator was late at the end of the window; it said so a moment earlier, and lateness grows evenly."""
        if told is None:
            return self._end
        since = told.at - self._order.begin
        return told.late * min(2.0, max(1.0, self._end / since)) if since > 0 else told.late

    def _now(self) -> float:
        """Seconds since the first message was due."""
        return time.monotonic() - self._order.begin

    def _look(self, phase: str) -> float:
        """Take in what load and framework say; the time at which that was."""
        moved: float | None = None
        try:
            told = [sent for sent in self._standing.load.ask() if sent.run == self._run]
            self._sent = told[-1] if told else self._sent
        except HarnessError as problem:
            self._die("load died", problem)
        try:
            for report in self._standing.framework.ask():
                if report.run in (self._run, NO_RUN):
                    self._tally.add(report)
                    self._add_latencies(report)
                    moved = max(report.at - self._order.begin, moved or 0.0)
                elif report.run:
                    self._stale += report.count
        except HarnessError as problem:
            self._die("framework died", problem)
        if any(not child.alive() for child in self._servers):
            self._die("source died", ProcessDiedError("a server of the source ended"))
        now = self._now()
        self._add_row(now if moved is None else moved, moved is not None)
        if now >= self._shown + SHOW_EVERY:
            self._shown = now
            self._show(self._glimpse(phase, now))
        return now

    def _add_latencies(self, report: ProcessingReport) -> None:
        second = max(0, int(report.at - self._order.begin))
        for kind, sparse in zip(KINDS, (report.from_due, report.from_sent, report.processing), strict=True):
            self._latencies.add(second, kind, sparse)

    def _die(self, what: Ending, problem: HarnessError) -> None:
        if self._dead is None:
            self._dead, self._note = what, str(problem).splitlines()[0]

    def _add_row(self, at: float, moved: bool) -> None:  # noqa: FBT001
        last = self._rows.last_at
        if not moved and at < last + ROW_EVERY:
            return
        at = max(at, last)
        self._rows.add(at, self._schedule.count(at), self._confirmed, self._processed)

    def _glimpse(self, phase: str, now: float) -> TrialProgress:
        return TrialProgress(self._planned, phase, now, self._schedule.count(now), self._confirmed, self._processed)

    def _is_hopeless(self, now: float) -> bool:
        """Whether the backlog is too large for the machine, or has grown so much that the window cannot end well."""
        interval, settle, rows = self._standing.framework.batch_interval, self._planned.settle, self._rows
        in_batches = 2.5 * interval * self._planned.rate
        if (rows.backlog - in_batches) * self._order.message_bytes > MAX_BACKLOG_BYTES:
            return True
        elapsed = now - settle
        if elapsed < max(2.0, 3 * interval):
            return False
        lately = rows.least_backlog(now - max(0.5, 1.5 * interval), float("inf"))
        most = HOPELESS_LOSS * self._planned.rate * elapsed + 10
        if lately is None or lately <= most:  # early ones are hardly below zero: there is nothing to look up
            return False
        early = rows.least_backlog(settle, settle + elapsed / 3)
        return early is not None and lately - early > most


def _quantiles(histogram: Histogram) -> Latency:
    return Latency(*(histogram.quantile(share) for share in (0.5, 0.9, 0.99, 1.0)))
