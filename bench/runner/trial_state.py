"""The counters of one trial under way: pure, every call is given the time.

Three counters are followed: offered, from the due times alone; sent, as the source confirms; processed, as the
framework reports.
"""

from collections.abc import Callable

from bench.analysis.first_result import FILL_FACTOR, MAX_WAIT_S, first_due_s
from bench.analysis.histogram import KINDS, HistogramsPerSecond
from bench.analysis.hopeless_backlog import FALLING_SHARE, max_growth, recent_seconds
from bench.analysis.time_series import TimeSeries
from bench.model.arrivals import Schedule
from bench.model.measurement import Batches, EndReason, PlannedTrial
from bench.model.trace import TraceEvents
from bench.runner.trial_trace import TrialTrace
from bench.workload.delivery_counts import DeliveryCounts, ProcessingReport
from bench.workload.load_spec import LoadSpec, SendProgress
from bench.workload.open_loop import IDLE_PROGRESS_INTERVAL_S
from bench.workload.processing import NO_RUN

ROW_INTERVAL_S = 0.1
MAX_BACKLOG_S = 20.0
"""Seconds of load: a larger backlog of a source on other hosts is hopeless; what waits for its batch is no backlog."""
MAX_SILENCE_S = 2 * IDLE_PROGRESS_INTERVAL_S
"""Without a report, while the load generator has something to send."""
MAX_MEMORY_SHARE = 0.25
"""Of this machine's memory: a larger backlog of a source on this machine does not fit."""


class TrialState:
    """The counters; times are seconds since the first due time, unless they are said to be monotonic."""

    def __init__(
        self,
        planned: PlannedTrial,
        spec: LoadSpec,
        batch_interval: float,
        memory_bytes: float | None = None,
        *,
        traced: bool = False,
    ) -> None:
        """Create the state before the first message.

        Args:
            planned: The trial.
            spec: Its messages.
            batch_interval: Seconds that a batch of the framework should take; 0 for a continuous one.
            memory_bytes: Memory of this machine if it holds the source's messages; None for a source elsewhere.
            traced: Whether the events of a trace are kept.
        """
        self.planned, self.spec, self.batch_interval = planned, spec, batch_interval
        self._max_backlog = MAX_BACKLOG_S * planned.rate
        if memory_bytes is not None:
            self._max_backlog = MAX_MEMORY_SHARE * memory_bytes / spec.message_bytes
        self.schedule: Schedule = spec.schedule()
        self.counts, self.stale = DeliveryCounts(), 0
        self.latencies, self.rows = HistogramsPerSecond(), TimeSeries()
        self.trace = TrialTrace(spec.begin) if traced else None
        self._batches: dict[tuple[float, float], int] = {}
        self.progress: SendProgress | None = None
        self._death: tuple[EndReason, str] | None = None

    def add_progress(self, progress: SendProgress) -> None:
        """Take in what the load generator says of itself; another run's is dropped."""
        if progress.run == self.spec.run:
            self.progress = progress
            if self.trace is not None:
                self.trace.add_progress(progress)

    def add_report(self, report: ProcessingReport) -> bool:
        """Take in what the framework says; return whether it is about this trial."""
        if self.trace is not None and report.trace is not None:
            self.trace.add(report.trace)
            if not report.sums and not report.corrupted:
                return False  # of a worker that has nothing to do
        if report.run not in (self.spec.run, NO_RUN):
            self.stale += report.count if report.run else 0
            return False
        self.counts.add(report)
        second = max(0, int(report.at - self.spec.begin))
        for kind, sparse in zip(KINDS, (report.from_due, report.from_sent, report.processing), strict=True):
            self.latencies.add(second, kind, sparse)
        if report.began is not None:
            batch = (report.at - self.spec.begin, report.began - self.spec.begin)
            self._batches[batch] = self._batches.get(batch, 0) + report.count + report.corrupted
        return True

    def add_death(self, what: EndReason, note: str) -> None:
        """Note what died first, with a line about it; what dies of it later is not noted."""
        if self._death is None:
            self.set_death(what, note)

    def set_death(self, what: EndReason, note: str) -> None:
        """Note what died, in place of what was noted before."""
        self._death = what, note

    @property
    def death(self) -> EndReason | None:
        """Return what died; None if nothing did."""
        return self._death[0] if self._death is not None else None

    @property
    def note(self) -> str:
        """Return the line about what died; empty if nothing did."""
        return self._death[1] if self._death is not None else ""

    def add_row(self, at: float, *, moved: bool) -> None:
        """Keep the counters of a moment: whenever the processed counter moved, and every ROW_INTERVAL_S."""
        last = self.rows.last_at
        if moved or at >= last + ROW_INTERVAL_S:
            at = max(at, last)
            self.rows.add(at, self.schedule.count(at), self.confirmed, self.processed)

    def batches(self) -> Batches:
        """Return the micro-batches so far, as far as they were of this trial."""
        rows = sorted(self._batches.items())
        return Batches([begin for (_, begin), _ in rows], [end for (end, _), _ in rows], [count for _, count in rows])

    def trace_events(self) -> TraceEvents:
        """Return the events of the trace so far; empty if the trial is not traced."""
        return self.trace.events() if self.trace is not None else TraceEvents()

    @property
    def window_end(self) -> float:
        """Return when the window ends."""
        return self.planned.settle + self.planned.window

    @property
    def processed(self) -> int:
        """Return the processed messages, damaged ones included; not once more those that a restart processed again."""
        return self.counts.count + self.counts.corrupted - self.counts.processed_again

    @property
    def confirmed(self) -> int:
        """Return the messages that the source confirmed."""
        return self.progress.confirmed if self.progress is not None else 0

    @property
    def failed(self) -> int:
        """Return the messages that the source finally refused."""
        return self.progress.failed if self.progress is not None else 0

    @property
    def is_sent(self) -> bool:
        """Return whether the load generator is done."""
        return self.progress is not None and self.progress.done

    @property
    def is_exact(self) -> bool:
        """Return whether everything confirmed so far was processed once."""
        return self.processed == self.confirmed and self.losses() == (0, 0)

    def has_settled(self, quiet: float, is_idle: Callable[[], bool]) -> bool:
        """Return whether nothing more will be processed, after so many seconds in which nothing was.

        What is missing then is lost. A framework whose workers change is idle while they start, however long that
        takes: only the deadline of the drain ends such a trial.

        Args:
            quiet: Seconds without a processed message.
            is_idle: Tells whether the framework has used hardly any CPU meanwhile; asked only where it matters.
        """
        if not self.is_sent:
            return False
        if self.processed >= self.confirmed:
            return quiet > 1 + 2 * self.batch_interval
        return self.planned.purpose != "elasticity" and quiet > 10 + 5 * self.batch_interval and is_idle()

    def losses(self) -> tuple[int, int]:
        """Return (lost, duplicated) so far; a damaged message is damaged, not lost."""
        confirmed = self.progress.by_producer() if self.progress is not None else {}
        lost, duplicated = self.counts.reconcile(confirmed)
        holes = min(lost, duplicated, self.failed)  # what was refused has left its number free
        return max(0, lost - holes - self.counts.corrupted), duplicated - holes

    def lateness(self, at_end: SendProgress | None, end: float) -> float:
        """Return by how many seconds the generator was late at the end of the window.

        It said so a moment earlier, and lateness grows evenly until then. Where it then said nothing, its later reports
        tell whether it stood still.
        """
        if at_end is None:
            return end
        since = at_end.at - self.spec.begin
        late = at_end.late * min(2.0, max(1.0, end / since)) if since > 0 else at_end.late
        stalled = self.stalled(at_end, end)
        return max(late, min(end - since, stalled)) if stalled > at_end.stalled else late

    def stalled(self, at_end: SendProgress, end: float) -> float:
        """Return the longest time for which the generator itself stood still until the end of the window, in seconds.

        It cannot report while it does: after a silence its next report counts.
        """
        silence = end - (at_end.at - self.spec.begin)
        if silence <= MAX_SILENCE_S or self.progress is None:
            return at_end.stalled
        return max(at_end.stalled, self.progress.stalled)

    def is_hopeless(self, now: float) -> bool:
        """Return whether the backlog is too large to hold, or has grown so much that the window cannot end well.

        Where the load follows a profile, it may grow within a period: only whole periods tell, at the trial's end.
        """
        interval, rate = self.batch_interval, self.planned.rate
        if self.rows.backlog - 2.5 * interval * rate > self._max_backlog:
            return True
        if self.spec.profile:
            return False
        begin = self._steady_from()
        elapsed = now - begin
        allowed = float(max_growth(elapsed, rate, interval))
        recent = self.rows.min_backlog(now - recent_seconds(interval), float("inf"))
        if recent is None or recent <= allowed:  # early ones are hardly below zero: there is nothing to look up
            return False
        early = self.rows.min_backlog(begin, begin + elapsed / 3)
        return early is not None and recent - early > allowed and not self._may_recover(now)

    def _steady_from(self) -> float:
        """Return the seconds from which on the backlog of a continuous system tells; those of settling for batches."""
        settle, first, due = self.planned.settle, self.rows.nothing_until, self.rows.first_offered
        if self.batch_interval > 0 or due is None:
            return settle
        if first is None:
            return settle + MAX_WAIT_S
        return max(settle, FILL_FACTOR * (first - first_due_s(*due, self.planned.rate)))

    def _may_recover(self, now: float) -> bool:
        """Return whether a continuous system stands still for the moment, or works its backlog off."""
        span = recent_seconds(self.batch_interval)
        if self.batch_interval > 0:
            return False
        most = self.rows.max_backlog(now - span, now)
        return (
            most is not None and self.rows.backlog < FALLING_SHARE * most
        ) or span < now - self.rows.moved_at < MAX_WAIT_S
