"""Apache Flink as the harness sees it: a cluster that outlives the cells, and a job for each of them."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench.elasticity.live_samples import WorkerCounters
from bench.errors import NotReadyError, PluginError, ProcessDiedError, ServiceError
from bench.model.cell import Cell
from bench.model.trace import TraceEvents
from bench.plugins.environment import RunEnvironment
from bench.plugins.protocols import Endpoint
from bench.units import size_text
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor, report_events
from frameworks.flink.cluster import EmbeddedFlinkCluster, SiteFlinkCluster, cluster_of, slots_of
from frameworks.flink.commands import SubmitJob, Submitted, Work
from frameworks.flink.conf import (
    MAX_LINE_BYTES,
    FlinkSettings,
    config_text,
    gathered_messages,
    job_conf,
    max_messages,
    refused_option,
    source_options,
)
from frameworks.flink.installation import job_jars
from frameworks.flink.rest import ENDED, FlinkRest, JobStatus
from frameworks.flink.scaling import JobScaling
from frameworks.flink.task_shares import TaskShares
from frameworks.report_server import ReportServer

__all__ = ["FlinkFramework", "FlinkSettings"]

logger = logging.getLogger(__name__)

SUBMIT_TIMEOUT_S = 150.0
"""Usually 7 s, and 60 s on a busy machine."""
READY_TIMEOUT_S = 150.0
"""For all tasks to run, with their Python workers; usually 5 s, and 40 s on a busy machine."""
CANCEL_TIMEOUT_S = 30.0
REASON_TIMEOUT_S = 10.0
_WATCH_INTERVAL_S = 0.5
_POLL_INTERVAL_S = 0.05
_SOURCES = ("tcp", "files", "kafka")


class FlinkFramework:
    """Jobs, one a cell, in a cluster that outlives them."""

    batch_interval = 0.0

    def __init__(self, settings: FlinkSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        if source == "pulsar":
            return "the newest connector of Flink to pulsar is for Flink 1.18, and this is Flink 2.3"
        if source not in _SOURCES:
            return f"Flink reads {', '.join(_SOURCES)} here, not {source}"
        if source == "tcp" and cell.message_bytes > MAX_LINE_BYTES:
            return (
                f"messages above {size_text(MAX_LINE_BYTES)} take Flink's reader of sockets seconds:"
                " it searches for the end of a line again after every 8 KiB"
            )
        if source == "tcp" and self._settings.options:
            return "settings.flink.options are those of a connector, and a socket is read without one: leave them out"
        if (option := refused_option(self._settings, source)) is not None:
            return f"settings.flink.options has {option!r}, which `mode: datastream` does not take: leave it out"
        return None

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "RunningJob":
        """Start to process the endpoint's messages; return once all tasks of the job run.

        Raises:
            PluginError: the job fails before it runs, or the site's cluster has too few task slots free.
            SiteError: a file that the endpoint names cannot be read, or nobody can listen for reports.
            UsageError: Flink, PySpark or Java is missing.
            ServiceError: the cluster, the client or a task does not come up, or the connector cannot be had.
        """
        settings, cluster = self._settings, cluster_of(self._settings, env)
        elastic, slots = env.max_workers is not None, slots_of(self._settings, env)
        with ExitStack() as opening:
            server = ReportServer(*cluster.listen, key="flink.listen", restarts=elastic)
            reports = opening.enter_context(contextlib.closing(server))
            command = SubmitJob(
                rest=cluster.rest.address,
                mode=settings.mode,
                jars=tuple(map(str, job_jars(endpoint.source, env.cache, env.note))),
                modules=str(cluster.modules or ""),
                conf=job_conf(settings, cell, parallelism=1 if elastic else slots, python=cluster.python),
                source=source_options(settings, endpoint, max_messages(settings, cell)),
                work=Work(work, reports.address, at_once=elastic, gathered=1 if elastic else gathered_messages(cell)),
            )
            job = _submit(command, cluster, env)
            opening.callback(_end_job, job, cluster)
            _wait_until_it_reads(job, cluster, endpoint)
            opening.pop_all()  # it stays open
        scaling = JobScaling(cluster.rest, job, min(slots, endpoint.parts))
        return RunningJob(cluster, reports, scaling, traced=work.traced)


class RunningJob:
    """The job of one cell, all of whose tasks run; its cluster outlives it."""

    def __init__(
        self,
        cluster: EmbeddedFlinkCluster | SiteFlinkCluster,
        reports: ReportServer,
        scaling: JobScaling,
        *,
        traced: bool,
    ) -> None:
        self.cluster, self._reports, self._scaling, self._closed = cluster, reports, scaling, False
        self._shares = TaskShares() if traced else None
        self._watch = JobWatch(cluster.rest, scaling.job, self._look)

    @property
    def session(self) -> str:
        """Return the name of the cluster that serves the cell."""
        return self.cluster.name

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: the job, a Python worker, or a process of the cluster ended.
        """
        failure, ended = self._watch.failure, self._reports.ended()  # first: what was said last is still heard
        reports = self._reports.received()
        if reports:
            return self._with_shares(reports)
        self.cluster.check()
        if failure is not None:
            raise ProcessDiedError(f"the job of Flink ended: {failure}", self.cluster.log)
        if ended and not self._scaling.has_begun:
            raise ProcessDiedError("a Python worker of Flink ended", self.cluster.log)
        return self._with_shares(reports)

    def _with_shares(self, reports: list[ProcessingReport]) -> list[ProcessingReport]:
        """Return reports, and one of what the subtasks did, if the job is traced."""
        samples = self._shares.take() if self._shares is not None else []
        return reports + report_events(TraceEvents(samples=samples) if samples else None)

    def _look(self, view: JobStatus) -> None:
        self._scaling.look()
        if self._shares is not None:
            rest, job = self.cluster.rest, self._scaling.job
            self._shares.look(view.vertices, lambda vertex: rest.subtasks(job, vertex), time.monotonic())

    @property
    def max_workers(self) -> int:
        """Return the highest parallelism."""
        return self._scaling.max_workers

    def rescale(self, workers: int) -> None:
        """Begin to change the parallelism; PluginError where Flink refuses."""
        self._scaling.rescale(workers)

    def workers(self) -> Sequence[WorkerCounters]:
        """Return what each subtask has counted since its metrics were known."""
        return self._scaling.counters()

    def close(self) -> None:
        """Stop; idempotent."""
        if self._closed:
            return
        self._closed = True
        self._watch.close()
        _end_job(self._scaling.job, self.cluster)
        self._reports.close()


def _submit(command: SubmitJob, cluster: EmbeddedFlinkCluster | SiteFlinkCluster, env: RunEnvironment) -> str:
    """Start a job; return its id. A cluster of our own that may have a job whose id never came is closed."""
    client = cluster.start_client(env)
    try:
        # the options of the source stay out: they may hold a password
        client.log.with_suffix(".conf").write_text(config_text(command.conf), encoding="utf-8")
        client.inbox.send(command)
        return client.wait_reply(Submitted, SUBMIT_TIMEOUT_S).job
    except NotReadyError:
        cluster.close()
        raise
    finally:
        client.kill()  # nothing of a job is in its client, whose JVM takes its time to end


def _wait_until_it_reads(job: str, cluster: EmbeddedFlinkCluster | SiteFlinkCluster, endpoint: Endpoint) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not (view := cluster.rest.job(job)).reads:
        cluster.check()
        if view.failing:
            reason = failure_of(cluster.rest, job, view.state)
            raise PluginError("flink", "open", f"the job that reads {endpoint.source} at {endpoint.address}: {reason}")
        if time.monotonic() > deadline:
            states = ", ".join(vertex.status for vertex in view.vertices)
            raise NotReadyError(
                f"the job of Flink does not run after {READY_TIMEOUT_S:g} s: {view.state}, its tasks {states}",
                cluster.log,
            )
        time.sleep(_POLL_INTERVAL_S)


def _end_job(job: str, cluster: EmbeddedFlinkCluster | SiteFlinkCluster) -> None:
    """End a job. A cluster of our own in which it does not end is closed: the next cell gets a new one."""
    if not cluster.alive():
        return
    rest, deadline = cluster.rest, time.monotonic() + CANCEL_TIMEOUT_S
    try:
        if not rest.job(job).failing:
            rest.cancel(job)
        while rest.job(job).state not in ENDED:
            if time.monotonic() > deadline:
                raise NotReadyError(f"the job did not end within {CANCEL_TIMEOUT_S:g} s", cluster.log)
            time.sleep(_POLL_INTERVAL_S)
    except ServiceError as problem:
        logger.warning("job %s of %s could not be ended: %s", job, cluster.name, problem)
        cluster.close()


class JobWatch:
    """A thread that asks for the state of a job, so that nobody else has to wait for the answer.

    A cluster that does not answer is no failure of the job: the harness sees by itself when its processes end.

    Args:
        rest: of the cluster.
        job: its id.
        look: called each time with that state; it may raise ServiceError.
    """

    def __init__(self, rest: FlinkRest, job: str, look: Callable[[JobStatus], None]) -> None:
        self.failure: str | None = None
        """why the job ended; None while it runs"""
        self._rest, self._job, self._look, self._closed = rest, job, look, threading.Event()
        threading.Thread(target=self._run, daemon=True, name="flink job").start()

    def close(self) -> None:
        """Stop asking."""
        self._closed.set()

    def _run(self) -> None:
        while self.failure is None and not self._closed.wait(_WATCH_INTERVAL_S):
            try:
                view = self._rest.job(self._job)
                if view.failing:
                    self.failure = failure_of(self._rest, self._job, view.state)
                self._look(view)
            except ServiceError as problem:
                logger.debug("%s", problem)


def failure_of(rest: FlinkRest, job: str, state: str) -> str:
    """Return why a job processes nothing any more; Flink says so only when all its tasks have ended."""
    deadline = time.monotonic() + REASON_TIMEOUT_S
    while not (reason := rest.failure(job)) and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL_S)
    return reason or f"it is {state.lower()}"


def prepare(settings: FlinkSettings, cell: Cell, env: RunEnvironment) -> None:
    """Start the run's cluster, and fetch the connector where the cell needs it."""
    job_jars(cell.source, env.cache, env.note)
    cluster_of(settings, env)
