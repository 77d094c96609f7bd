"""HarmonicIO as a framework under test: its PEs process messages that come from its connector or over a bridge."""

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from secrets import token_hex
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from bench.elasticity.live_samples import WorkerCounters
from bench.errors import PluginError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.environment import RunEnvironment
from bench.plugins.placement import place
from bench.plugins.protocols import Endpoint
from bench.system.child import Child
from bench.system.ipc import Failure, Ready
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from frameworks.batch_limits import max_batch_messages, max_messages_in_memory
from frameworks.harmonicio import job
from frameworks.harmonicio.bridge import Bridging
from frameworks.harmonicio.cluster import (
    IMAGE,
    READY_TIMEOUT_S,
    EmbeddedHarmonicioCluster,
    SiteHarmonicioCluster,
    cluster_of,
    read_token,
    too_large,
)
from frameworks.harmonicio.engine.connector import Options
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.scaling import PeScaling
from frameworks.harmonicio.spans import QueueSpans
from frameworks.report_server import ReportServer

__all__ = ["HarmonicioFramework", "HarmonicioSettings"]

logger = logging.getLogger(__name__)

STREAM = "stream"
"""The source that is HarmonicIO's own connector; every other one is read by a bridge."""
MAX_BATCH_CPU_S = 0.1
"""CPU time that the messages of a batch may ask for. Only what waits is put together."""
STOP_TIMEOUT_S = 40.0


class HarmonicioSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of PEs that process messages, and of bridges that feed them where a bridge is needed."""

    pes: Annotated[int, Meta(ge=1)] | None = None
    """the framework's cores when left out"""
    bridges: Annotated[int, Meta(ge=1)] = 1
    """processes of this machine, also where the cluster is the site's"""


class HarmonicioFramework:
    """Streams of their own, one a cell, in a cluster that outlives the cells."""

    batch_interval = 0.0

    def __init__(self, settings: HarmonicioSettings) -> None:
        self._settings = settings

    def unsupported_reason(self, cell: Cell, source: str) -> str | None:
        """Return why it cannot process the cell from that source, in a sentence; None when it can."""
        return too_large(cell) or (None if source == STREAM else registry.missing_consumer(source))

    def open(self, cell: Cell, endpoint: Endpoint, work: MessageProcessor, env: RunEnvironment) -> "RunningStream":
        """Start to process the endpoint's messages; return once they are read.

        Raises:
            PluginError: the master refuses the PEs, or others run there.
            SiteError: PEs do not run in time on the site's cluster, or what the site names cannot be used.
            ServiceError: the run's own cluster, or a bridge, does not come up.
        """
        stream = RunningStream(cluster_of(env), endpoint)
        with ExitStack() as opening:
            opening.callback(stream.close)
            pes = self._settings.pes or place("harmonicio", endpoint.source, env.site, env.cores).cores
            stream.start_pes(pes, work, max_batch_messages(cell, MAX_BATCH_CPU_S))
            if endpoint.source != STREAM:
                stream.start_bridges(min(self._settings.bridges, endpoint.parts), cell, env, traced=work.traced)
            opening.pop_all()  # it stays open
        return stream


class RunningStream:
    """The PEs of one stream, and the bridges that feed it where its messages come from another source."""

    def __init__(self, cluster: EmbeddedHarmonicioCluster | SiteHarmonicioCluster, endpoint: Endpoint) -> None:
        self._cluster, self._endpoint, self._closed = cluster, endpoint, False
        self._bridges: list[Child] = []
        self._queue_spans: QueueSpans | None = None
        self._stream = endpoint.name if endpoint.source == STREAM else f"bridged-{token_hex(4)}"
        self._report_server = ReportServer(*cluster.listen, key="harmonicio.listen")

    def start_pes(self, pes: int, work: MessageProcessor, most: int) -> None:
        """Start so many PEs, which process batches of at most `most` messages; return once they are leased."""
        job_settings = job.JobSettings(work, most, self._report_server.address)
        wanted = {"c_name": self._stream, "image": IMAGE, "num": pes, "settings": msgspec.to_builtins(job_settings)}
        self._scaling = PeScaling(self._cluster.operator, wanted)
        try:
            if others := self._cluster.others(self._stream):
                raise PluginError(
                    "harmonicio", "open", f"PEs of {', '.join(others)} are there; end them: harmonicio stop STREAM"
                )
            self._cluster.operator.submit(wanted)
            self._wait_for(pes)
            if work.traced and isinstance(self._cluster, EmbeddedHarmonicioCluster):  # a site has another clock
                self._queue_spans = QueueSpans(self._cluster.operator)
        except HarmonicError as problem:
            raise PluginError("harmonicio", "open", str(problem)) from problem

    def start_bridges(self, members: int, cell: Cell, env: RunEnvironment, *, traced: bool = False) -> None:
        """Start so many bridges from the endpoint to the stream; return once they read."""
        reach = self._cluster.reach
        fed = Options(
            c_name=self._stream,
            host=reach.data_host,
            port=reach.data_port,
            token=read_token(reach.token_file),
            tls=reach.tls,
            overflow="absent",
        )
        most = max_messages_in_memory(cell)
        for member in range(members):
            command = [sys.executable, "-m", "frameworks.harmonicio.bridge"]
            received = Ready | Failure | ProcessingReport
            bridge = env.supervisor.start(command, name=f"bridge-{member}", role="framework", received=received)
            self._bridges.append(bridge)
            bridge.inbox.send(Bridging(self._endpoint, fed, member=member, members=members, most=most, traced=traced))
        for bridge in self._bridges:
            bridge.wait_reply(Ready, READY_TIMEOUT_S)

    def poll(self) -> list[ProcessingReport]:
        """Return what was processed since the last call.

        Raises:
            ProcessDiedError: a PE, a bridge, or the run's own master or worker ended.
        """
        ended = self._report_server.ended()  # first: what a PE said last is still heard
        reports = self._report_server.received()
        traces = self._queue_spans.received() if self._queue_spans is not None else []
        for bridge in self._bridges:
            heard = bridge.receive()
            if not heard and not bridge.alive():
                raise bridge.exit_error()
            traces += [report for report in heard if isinstance(report, ProcessingReport)]
        self._cluster.check()
        if ended > self._scaling.ended and not reports:
            raise self._cluster.pe_ended(self._stream)
        self._scaling.step()
        return reports + traces

    @property
    def max_workers(self) -> int:
        """Return the most PEs that the cluster runs."""
        return self._scaling.max_workers()

    def rescale(self, workers: int) -> None:
        """Begin to change to so many PEs; raises PluginError where the master refuses."""
        self._scaling.rescale(workers)

    def workers(self) -> Sequence[WorkerCounters]:
        """Return what each PE has counted that is not about to end; raises PluginError where no master answers."""
        return self._scaling.counters()

    def close(self) -> None:
        """Stop; idempotent."""
        while self._bridges:
            self._bridges.pop().stop()
        if self._closed:
            return
        self._closed = True
        if self._queue_spans is not None:
            self._queue_spans.close()
        if self._cluster.alive():
            self._withdraw()
        self._report_server.close()

    def _withdraw(self) -> None:
        """End the PEs.

        A cluster in which they do not end is closed: the next cell gets a new one, or, of a site, is refused.
        """
        try:
            self._cluster.operator.withdraw(self._stream, purge=True)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while any(pe["c_name"] == self._stream for pe in self._cluster.operator.status()["pes"]):
                if time.monotonic() > deadline:
                    logger.warning("PEs of %s did not end within %g s", self._stream, STOP_TIMEOUT_S)
                    self._cluster.close()
                    return
                time.sleep(0.05)
        except HarmonicError as problem:
            logger.warning("PEs of %s could not be ended: %s", self._stream, problem)
            self._cluster.close()

    def _wait_for(self, pes: int) -> None:
        """Return once so many PEs are leased."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while self._report_server.ready() < pes or self._running() < pes:
            self._cluster.check()
            if time.monotonic() > deadline:
                problems = "; ".join(
                    row["problem"] for row in self._cluster.operator.status()["streams"] if row["problem"]
                )
                raise self._cluster.not_ready(
                    f"{self._running()} of {pes} PEs run after {READY_TIMEOUT_S:g} s {problems}".strip()
                )
            time.sleep(0.05)

    def _running(self) -> int:
        view: dict[str, Any] = self._cluster.operator.status()
        return sum(pe["c_name"] == self._stream and pe["state"] == "running" for pe in view["pes"])
