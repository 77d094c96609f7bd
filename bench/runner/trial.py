"""One trial: messages at one rate for a while; settle, measure a window, drain.

Whether the rate was sustained is for the verdict (bench.analysis.verdict). A trial is given up as soon as it cannot be
sustained any more; what was sent is still waited for, so that the counts can be compared.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

from msgspec.structs import asdict

from bench.analysis.histogram import Histogram
from bench.analysis.hopeless_backlog import worth_waiting
from bench.errors import HarnessError
from bench.model.measurement import EndReason, Latency, Measurement, PlannedTrial
from bench.plugins.site_preflight import missing_endpoints, part_of
from bench.runner.deployment import Deployment
from bench.runner.progress import Notify, TrialProgress
from bench.runner.trial_state import TrialState
from bench.storage.run_folder import now_text
from bench.system.host_info import memory_bytes
from bench.system.procfs import OutOfMemory
from bench.telemetry.cpu import CpuProbe, CpuSnapshot
from bench.telemetry.resources import ResourceMeter, ResourceUsage
from bench.telemetry.site_hosts import HostMeter
from bench.workload.load_spec import SendProgress

START_DELAY_S = 0.1
"""From the command to send until the first due time."""
POLL_INTERVAL_S, NOTIFY_INTERVAL_S = 0.05, 0.25
DrainEnd = Literal["incomplete", "settled", "purged"]
"""The end of a drain: at its deadline; with nothing moving any more; with the rest dropped on purpose."""
MAX_IDLE_CORES = 0.15
"""A framework that uses less CPU than this is not working on a backlog."""


Control = Callable[[TrialState, float], None]
"""Changes the framework during a trial: it is called with the state, and the seconds since the first due time, as often
as these are looked at. The counts of such a trial must be exact, however far the framework falls behind."""


def run_trial(
    deployment: Deployment,
    planned: PlannedTrial,
    notify: Notify,
    control: Control | None = None,
    *,
    time_left: float = math.inf,
) -> Measurement:
    """Run one trial on an idle deployment and return its measurement.

    Args:
        deployment: Of the cell.
        planned: The trial.
        notify: Gets its progress.
        control: Changes the framework meanwhile.
        time_left: Seconds from the trial's begin on in which the deployment is of use.
    """
    trial = _Trial(deployment, planned, notify, control)
    ended = trial.measure_window()
    trial.drain(float(deployment.plan.scenario.timing.drain), max_wait=trial.worth_waiting(ended, time_left))
    trial.check_site(ended)
    measurement = trial.measurement(ended)
    deployment.add_load(trial.load_seconds)  # after the measurement, which has the load before this trial
    return measurement


class _Trial:
    """The shell around a trial's state: polls the plugins, reads the clock and the probes."""

    def __init__(self, deployment: Deployment, planned: PlannedTrial, notify: Notify, control: Control | None) -> None:
        self._deployment, self._reporter, self._control = deployment, _ProgressReporter(notify), control
        self._started, self._out_of_memory = now_text(), OutOfMemory()
        end = planned.settle + planned.window
        spec = deployment.load_spec(planned.number % 65535 + 1, planned.rate, time.monotonic() + START_DELAY_S, end)
        memory = None if deployment.plan.placement.source_remote else memory_bytes()
        self._state = TrialState(planned, spec, deployment.plan.batch_interval, memory, traced=spec.traced)
        self._probe, self._usage = CpuProbe(deployment.env.supervisor), ResourceUsage()
        self._hosts: HostMeter | None = None
        self._at_end: SendProgress | None = None
        self._end = self._worked = 0.0
        self._drain_end: DrainEnd = "incomplete"
        self._servers = [child for child in deployment.env.supervisor.children if child.role == "source"]
        deployment.load_generator.start(spec)

    def measure_window(self) -> EndReason:
        """Poll until the window is over, the rate cannot be sustained any more, or something died."""
        state, env = self._state, self._deployment.env
        meter: ResourceMeter | None = None
        ended: EndReason = "complete"
        while (now := self._poll("settling" if meter is None else "measuring")) < state.window_end:
            if state.death:
                break
            if meter is None and now >= state.planned.settle:
                meter, self._hosts = ResourceMeter(self._probe, env.supervisor), HostMeter(env.site)
            if self._control is None and state.is_hopeless(now):
                ended = "hopeless"
                break
            time.sleep(POLL_INTERVAL_S)
        if meter is not None and self._hosts is not None:
            self._hosts.stop()
            sees_other_work = not env.site.shared_machine and self._deployment.plan.placement.sees_other_work
            self._usage = meter.usage(sees_other_work=sees_other_work)
        self._at_end, self._end = state.progress, min(self._now(), state.window_end)
        if ended != "complete":
            self._deployment.load_generator.cancel()
        return state.death or ended

    @property
    def load_seconds(self) -> float:
        """Return for how long the framework was under load: until the load's end, or its last progress after it."""
        return max(0.0, self._end, self._worked)

    def worth_waiting(self, ended: EndReason, time_left: float) -> float:
        """Return for how many seconds a drain is worth waiting, `time_left` being those since the trial's begin."""
        if self._state.death or self._control is not None:
            return math.inf
        rules, redeploy_s = self._deployment.plan.rules, self._deployment.redeploy_s
        return worth_waiting(self.measurement(ended), rules, redeploy_s, time_left - self._end)

    def drain(self, seconds: float, max_wait: float = math.inf) -> None:
        """Poll until everything sent was processed exactly, nothing moves any more, or the deadline is over.

        Args:
            seconds: The deadline, to which two batch intervals are added.
            max_wait: A sooner one, after which what is left is given up: it is not lost, but dropped. It waits for the
                load generator to be done, so that its death is not taken for an overload.
        """
        state, extra = self._state, 2 * self._state.batch_interval
        deadline, give_up = (time.monotonic() + each + extra for each in (seconds, min(seconds, max_wait)))
        moved, last = time.monotonic(), -1
        quiet_from: CpuSnapshot | None = None
        while not state.death and time.monotonic() < (give_up if state.is_sent else deadline):
            self._poll("draining")
            if state.processed != last:
                moved, last, quiet_from = time.monotonic(), state.processed, None
                self._worked = self._now()
            if state.is_sent and state.is_exact:
                return
            quiet = time.monotonic() - moved
            if quiet > 1 and quiet_from is None:
                quiet_from = self._probe.snapshot()
            if state.has_settled(quiet, partial(self._is_idle_since, quiet_from)):
                self._drain_end = "settled"
                return
            time.sleep(POLL_INTERVAL_S)
        if max_wait < seconds and state.is_sent and not state.death:
            self._drain_end = "purged"
        if state.death or self._drain_end == "purged":
            self._deployment.load_generator.cancel()

    def check_site(self, ended: EndReason) -> None:
        """Find what the cell uses of the site and died, or whose host is gone, where not everything came through.

        A host that is gone says nothing of a rate.
        """
        state = self._state
        if ended == "complete" and state.is_sent and state.is_exact and not state.death:
            return
        missing = missing_endpoints(part_of(self._deployment.env.site, self._deployment.plan.cell))
        for endpoint in missing:
            died: EndReason = "source died" if endpoint.is_source else "framework died"
            state.set_death(died if endpoint.refused else "host gone", str(endpoint))
        if missing:
            self._deployment.load_generator.cancel()

    def measurement(self, ended: EndReason) -> Measurement:
        """Return the measurement so far; it is whole after the drain."""
        state, counts = self._state, self._state.counts
        lost, duplicated = state.losses()
        return Measurement(
            planned=state.planned,
            started=self._started,
            ended=state.death or ended,
            batch_interval=state.batch_interval,
            seconds=self._now() + START_DELAY_S,
            offered=state.schedule.count(self._end),
            sent=state.confirmed,
            failed=state.failed,
            processed=counts.count,
            lost=lost,
            duplicated=duplicated + state.stale,
            processed_again=counts.processed_again,
            out_of_order=counts.out_of_order if self._deployment.ordered else 0,
            corrupted=counts.corrupted,
            drained=state.is_sent and (state.is_exact or self._drain_end == "settled"),
            purged=self._drain_end == "purged" and not (state.is_sent and state.is_exact),
            warm_s=self._deployment.warm_s,
            late=state.lateness(self._at_end, self._end),
            blocked=self._at_end.blocked if self._at_end else 0.0,
            blocked_late=self._at_end.blocked_late if self._at_end else None,
            stalled=state.stalled(self._at_end, self._end) if self._at_end else None,
            cpu_requested_s=counts.cpu_requested_s,
            cpu_used_s=counts.cpu_used_s,
            unverified=counts.unverified,
            from_due=_quantiles(counts.from_due),
            from_sent=_quantiles(counts.from_sent),
            processing=_quantiles(counts.processing),
            negative=counts.negative,
            clocks=self._deployment.clocks,
            **asdict(self._usage),
            counts_exact=counts.exact,
            hosts=self._hosts.usage() if self._hosts is not None else {},
            note=state.note,
            latencies=state.latencies.buckets(),
            series=state.rows.series(),
            batches=state.batches(),
            trace=state.trace_events(),
            load_s=max(0.0, self._end),
        )

    def _poll(self, phase: str) -> float:
        """Take in what load generator and framework report; return the time at which that was."""
        state, deployment = self._state, self._deployment
        moved: float | None = None
        try:
            for progress in deployment.load_generator.poll():
                state.add_progress(progress)
        except HarnessError as problem:
            state.add_death("load died", self._line_about(problem))
        try:
            for report in deployment.framework.poll():
                if state.add_report(report):
                    moved = max(report.at - state.spec.begin, moved or 0.0)
        except HarnessError as problem:
            state.add_death("framework died", self._line_about(problem))
        for server in self._servers:
            if not server.alive():
                state.add_death("source died", self._line_about(server.exit_error()))
        now = self._now()
        state.add_row(now if moved is None else moved, moved=moved is not None)
        self._reporter.report(state, phase, now)
        if self._control is not None and not state.death:
            self._control(state, now)
        return now

    def _line_about(self, problem: HarnessError) -> str:
        return self._out_of_memory.remark_on(str(problem).splitlines()[0])

    def _now(self) -> float:
        return time.monotonic() - self._state.spec.begin

    def _is_idle_since(self, quiet_from: CpuSnapshot | None) -> bool:
        """Return whether the framework used hardly any CPU since then: what it has not processed is lost."""
        if quiet_from is None or "framework" in self._deployment.plan.placement.unseen_roles:
            return False
        used = self._probe.snapshot().since(quiet_from)
        return used.framework < MAX_IDLE_CORES * used.seconds


class _ProgressReporter:
    """A listener of a run that gets the progress of one trial every NOTIFY_INTERVAL_S at most."""

    def __init__(self, notify: Notify) -> None:
        self._notify, self._notified = notify, 0.0

    def report(self, state: TrialState, phase: str, now: float) -> None:
        """Pass the counters on, unless earlier ones were passed on just before; `now` is since the first due time."""
        if now >= self._notified + NOTIFY_INTERVAL_S:
            self._notified = now
            offered = state.schedule.count(now)
            self._notify(TrialProgress(state.planned, phase, now, offered, state.confirmed, state.processed))


def _quantiles(histogram: Histogram) -> Latency:
    return Latency(*(histogram.quantile(share) for share in (0.5, 0.9, 0.99, 1.0)))
