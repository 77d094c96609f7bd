"""HarmonicIO as a framework under test: its PEs do the harness's work; messages come from its connector, or over a bridge."""

import logging
import sys
import time
from secrets import token_hex
from typing import Any

import msgspec
from msgspec import Struct

from bench.errors import PluginError, ProcessDiedError
from bench.model.cell import Cell
from bench.plugins import registry
from bench.plugins.protocols import Endpoint, RunEnvironment
from bench.system.ipc import Failure, Ready
from bench.system.supervisor import Child
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import Work
from frameworks.harmonicio import job
from frameworks.harmonicio.bridge import Bridging
from frameworks.harmonicio.cluster import IMAGE, READY_SECONDS, Cluster, SitesCluster, cluster_of, too_large
from frameworks.harmonicio.engine.connector import Options
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.report_server import Accounts

__all__ = ["Framework", "Settings"]

logger = logging.getLogger(__name__)

UNORDERED = True
"""A bridge offers one part of its source after the other, and what waits for a PE is put together."""
STREAM = "stream"
"""The source that is HarmonicIO's own connector; every other one is read by a bridge."""
BATCH_SECONDS, BATCH_BYTES, BATCH_MESSAGES = 0.1, 8 * 10**6, 10_000
"""Bounds of a batch: by the CPU time that its messages ask for, and by what must lie in memory. Only what waits is put together."""
STOP_SECONDS = 40.0


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """How many PEs do the work, and how many bridges feed them where they are fed by some."""

    pes: int | None = None
    """the framework's cores when left out"""
    bridges: int = 1
    """processes of this machine, also where the cluster is the site's"""


class Framework:
    """PEs of one stream, in a cluster that outlives the cell."""

    batch_interval = 0.0

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cluster: Cluster | SitesCluster | None = None
        self._accounts: Accounts | None = None
        self._bridges: list[Child] = []
        self._stream = ""

    def unsupported_reason(self, cell: Cell, endpoint_source: str) -> str | None:
        if endpoint_source == "memory":
            return "memory is a pipe within the harness's own process, and a bridge is a process of its own"
        return too_large(cell) or (None if endpoint_source == STREAM else registry.without_consumer(endpoint_source))

    def open(self, cell: Cell, endpoint: Endpoint, work: Work, env: RunEnvironment) -> None:
        pes = self._settings.pes or env.site.cores_of("harmonicio", env.cores)
        self._cluster = cluster_of(env)
        self._accounts = Accounts(*self._cluster.listen)
        bridged = endpoint.source != STREAM
        self._stream = f"bridged-{token_hex(4)}" if bridged else endpoint.name
        told = job.Settings(work, _most(cell), self._accounts.host, self._accounts.port, self._accounts.secret)
        wanted = {"c_name": self._stream, "image": IMAGE, "num": pes, "settings": msgspec.to_builtins(told)}
        try:
            if others := self._cluster.others(self._stream):
                raise PluginError(
                    "harmonicio", "open", f"PEs of {', '.join(others)} are there; end them: harmonicio stop STREAM"
                )
            self._cluster.operator.submit(wanted)
        except HarmonicError as problem:
            raise PluginError("harmonicio", "open", str(problem)) from problem
        self._wait_for(pes)
        if bridged:
            self._bridge(cell, endpoint, env)

    def ask(self) -> list[ProcessingReport]:
        assert self._cluster is not None, "open comes first"
        assert self._accounts is not None
        ended = self._accounts.ended()  # first: what a PE said last is still heard
        reports = self._accounts.receive()
        for bridge in self._bridges:
            if not bridge.receive() and not bridge.alive():
                raise bridge.exit_error()
        self._cluster.check()
        if ended and not reports:
            raise ProcessDiedError(f"a PE of {self._stream} ended")
        return reports

    def close(self) -> None:
        while self._bridges:
            self._bridges.pop().stop()
        cluster, accounts, self._accounts = self._cluster, self._accounts, None
        if cluster is not None and accounts is not None and cluster.alive():
            self._withdraw(cluster)
        if accounts is not None:
            accounts.close()

    def _withdraw(self, cluster: Cluster | SitesCluster) -> None:
        """End the PEs; a cluster in which they do not end is closed: the next cell gets a fresh one, or, of a site, is refused."""
        try:
            cluster.operator.withdraw(self._stream, purge=True)
            deadline = time.monotonic() + STOP_SECONDS
            while any(pe["c_name"] == self._stream for pe in cluster.operator.status()["pes"]):
                if time.monotonic() > deadline:
                    logger.warning("PEs of %s did not end within %g s", self._stream, STOP_SECONDS)
                    cluster.close()
                    return
                time.sleep(0.05)
        except HarmonicError as problem:
            logger.warning("PEs of %s could not be ended: %s", self._stream, problem)
            cluster.close()

    def _wait_for(self, pes: int) -> None:
        """Return once so many PEs are leased to whoever asks."""
        assert self._cluster is not None
        assert self._accounts is not None
        deadline = time.monotonic() + READY_SECONDS
        while self._accounts.ready() < pes or self._running() < pes:
            self._cluster.check()
            if time.monotonic() > deadline:
                problems = "; ".join(
                    row["problem"] for row in self._cluster.operator.status()["streams"] if row["problem"]
                )
                raise self._cluster.not_ready(
                    f"{self._running()} of {pes} PEs run after {READY_SECONDS:g} s {problems}".strip()
                )
            time.sleep(0.05)

    def _running(self) -> int:
        assert self._cluster is not None
        view: dict[str, Any] = self._cluster.operator.status()
        return sum(pe["c_name"] == self._stream and pe["state"] == "running" for pe in view["pes"])

    def _bridge(self, cell: Cell, endpoint: Endpoint, env: RunEnvironment) -> None:
        assert self._cluster is not None
        members, reach = min(self._settings.bridges, endpoint.parts), self._cluster.reach
        fed = Options(
            c_name=self._stream,
            host=reach.data_host,
            port=reach.data_port,
            token=reach.token,
            tls=reach.tls,
            overflow="absent",
        )
        for member in range(members):
            command = [sys.executable, "-m", "frameworks.harmonicio.bridge"]
            bridge = env.supervisor.start(command, name=f"bridge-{member}", role="framework", received=Ready | Failure)
            self._bridges.append(bridge)
            bridge.inbox.send(Bridging(endpoint, fed, member=member, members=members, most=_at_once(cell)))
        for bridge in self._bridges:
            bridge.wait_reply(Ready, READY_SECONDS)


def _most(cell: Cell) -> int:
    """How many messages a batch may have."""
    by_cost = int(BATCH_SECONDS / cell.cpu_seconds) if cell.cpu_seconds else BATCH_MESSAGES
    return min(by_cost, _at_once(cell)) or 1


def _at_once(cell: Cell) -> int:
    """How many messages may lie in memory at once."""
    return max(1, min(BATCH_MESSAGES, BATCH_BYTES // cell.message_bytes))
