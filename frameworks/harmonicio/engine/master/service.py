"""The master as a whole: opens its parts and its two ports, and runs the loops that maintain them."""

import asyncio
import contextlib
import logging
import math
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import ConfigError
from frameworks.harmonicio.engine.http import MAX_BODY, address_family, middlewares, server_logger
from frameworks.harmonicio.engine.master.api import ControlApi
from frameworks.harmonicio.engine.master.coordinator import Coordinator
from frameworks.harmonicio.engine.master.data_port import DataPort, DataPortOptions
from frameworks.harmonicio.engine.master.dispatch import Dispatchers
from frameworks.harmonicio.engine.master.fleet import REQUEST_TIMEOUT_S, Fleet
from frameworks.harmonicio.engine.master.irm_loop import IrmLoop
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.legacy_api import LegacyApi
from frameworks.harmonicio.engine.master.queue import MessageQueue, QueueLimits
from frameworks.harmonicio.engine.master.registry import Registry
from frameworks.harmonicio.engine.master.view import build_tables
from frameworks.harmonicio.engine.master_log import format_sample
from frameworks.harmonicio.engine.tasks import end_process_on_error
from frameworks.harmonicio.engine.tls import client_context, server_context

logger = logging.getLogger(__name__)

_CHECK_INTERVAL_S = 0.25
_LATE_S = 1.0
"""Delay of a check from which on the master itself had not run: what it did not hear meanwhile was perhaps said."""
_SAMPLE_INTERVAL_S = 1.0
_RESTART_GRACE_S = 3.0
"""Time in which PEs of an earlier master may send a heartbeat before others are started in their place."""
_SHUTDOWN_TIMEOUT_S = 2.0
_LISTEN_BACKLOG = 512


class Master:
    """The parts of a running master; `run_master` opens and closes it."""

    def __init__(
        self, config: MasterConfig, coordinator: Coordinator, dispatchers: Dispatchers, port: DataPort
    ) -> None:
        self._config, self.coordinator, self.dispatchers, self._data_port = config, coordinator, dispatchers, port
        self._due = math.inf

    def view(self) -> dict[str, Any]:
        """Return everything that the dashboard, the metrics and `harmonicio status` show."""
        coordinator, port = self.coordinator, self._data_port
        totals = {
            "queue_bytes": coordinator.queue.bytes,
            "connectors": port.connections,
            "queued_total": port.accepted,
            "delivered_total": self.dispatchers.delivered,
            "refused_total": port.rejected,
        }
        tables = build_tables(coordinator.registry, coordinator.queue, coordinator.fleet, time.monotonic())
        irm = coordinator.irm.view() if coordinator.irm is not None else None
        return {"name": self._config.name, **tables, "totals": totals, "irm": irm}

    def start_tasks(self) -> "list[asyncio.Task[None]]":
        """Start the background tasks; the caller cancels them."""
        irm = self.coordinator.irm
        loops = [self._maintain(), self._reconcile(), *([irm.run()] if irm is not None else [])]
        tasks = [asyncio.create_task(loop) for loop in loops]
        for task in tasks:
            task.add_done_callback(end_process_on_error)
        return tasks

    async def _maintain(self) -> None:
        """Expire what sends no sign of life, and log a sample each second."""
        registry, queue, sampled = self.coordinator.registry, self.coordinator.queue, 0.0
        while True:
            now = self._begin_check()
            if now > sampled + _SAMPLE_INTERVAL_S and (registry.pes or queue.messages):
                sampled = now
                self._log_sample()
            pes, workers = registry.expire(now)
            for pe_id in pes:
                logger.warning("PE %s sent no heartbeat for %g s: expired", pe_id, self._config.pe_seconds)
            for name in workers:
                logger.warning("worker %s sent no report for %g s: expired", name, self._config.worker_seconds)
            self._data_port.maintain(now)
            if pes:
                self._data_port.send_leases()
            await asyncio.sleep(_CHECK_INTERVAL_S)

    def _log_sample(self) -> None:
        """Log the queue, the leases, each PE and each worker in one line."""
        view = self.view()
        queued = {row["c_name"]: row["queued"] for row in view["streams"]}
        pes = [
            (row["id"], row["state"], row["stats"].get("processed"), row["stats"].get("waiting")) for row in view["pes"]
        ]
        workers = [(row["name"], row["cpu"], row["pes"]) for row in view["workers"]]
        sample = {"queued": queued, "leases": len(view["leases"]), "pes": pes, "workers": workers}
        logger.info("%s", format_sample(sample))

    async def _reconcile(self) -> None:
        """Start desired PEs that are missing."""
        fleet = self.coordinator.fleet
        if fleet.desired:  # PEs of an earlier master still run, and have not sent a heartbeat yet
            await asyncio.sleep(_RESTART_GRACE_S)
        while True:
            await fleet.reconcile(self._begin_check())
            await asyncio.sleep(_CHECK_INTERVAL_S)

    def _begin_check(self) -> float:
        """Return the monotonic time; whichever loop is the first after a pause lets nothing expire for it."""
        now = time.monotonic()
        if now > self._due + _LATE_S:
            logger.warning("the master did not run for %.1f s", now - self._due)
            self.coordinator.registry.postpone(now - self._due)
            self.coordinator.fleet.postpone(now - self._due)
        self._due = now + _CHECK_INTERVAL_S
        return now


@contextlib.asynccontextmanager
async def run_master(config: MasterConfig) -> AsyncIterator[Master]:
    """Run a master for as long as the block lasts; what is queued then stays in the journal.

    Raises:
        ConfigError: an address, a port or a folder cannot be used.
    """
    async with AsyncExitStack() as stack:
        try:
            master = await _open(config, stack)
        except (OSError, UnicodeError) as error:  # UnicodeError: of a host such as a..b
            ports = f"{config.host}:{config.port} and {config.data_port}"
            raise ConfigError(f"the master cannot listen at {ports}: {error}") from None
        stack.push_async_callback(master.dispatchers.close)
        for c_name in master.coordinator.queue.streams:
            master.dispatchers.deliver(c_name)
        stack.push_async_callback(_cancel, master.start_tasks())
        yield master


async def _open(config: MasterConfig, stack: AsyncExitStack) -> Master:
    """Open all parts; the stack closes them in reverse order. Raises OSError when a port cannot be used."""
    tls = (server_context(config.tls), client_context(config.tls)) if config.tls is not None else (None, None)
    journal = _open_journal(config)
    if journal is not None:
        stack.callback(_close_journal, journal)
    registry = Registry(
        pe_seconds=config.pe_seconds, worker_seconds=config.worker_seconds, lease_seconds=config.lease_seconds
    )
    queue = MessageQueue(QueueLimits(config.queue_messages, config.queue_bytes, config.memory_bytes), journal)
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    session = await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout))
    fleet = Fleet(
        registry, session, config.tokens.worker, state=config.state, tls=config.tls, ends_surplus=config.irm != "on"
    )
    irm = IrmLoop(config, registry, queue, fleet) if config.irm == "on" else None
    dispatchers = Dispatchers(queue, registry, config.tokens.connector, tls=tls[1])

    listener = socket.create_server(
        (config.host, config.data_port), family=address_family(config.host), backlog=_LISTEN_BACKLOG
    )
    port_number = listener.getsockname()[1]
    options = DataPortOptions(
        token=config.tokens.connector, legacy_protocol=config.legacy_protocol, max_message_bytes=config.message_bytes,
        on_queued=dispatchers.deliver,
    )  # fmt: skip
    durable = journal if journal is not None and journal.durable else None
    data_port = DataPort(listener, registry, queue, durable, options, tls=tls[0])
    stack.callback(data_port.close)

    def notify(c_name: str) -> None:
        data_port.send_leases(c_name)
        dispatchers.notify(c_name)

    coordinator = Coordinator(registry, queue, fleet, irm, on_pes_changed=notify)
    master = Master(config, coordinator, dispatchers, data_port)
    routes = ControlApi(config, coordinator, master.view, port_number).routes()
    if config.legacy_protocol:
        routes += LegacyApi(config, coordinator, master.view, port_number).routes()
    await _serve_http(config, routes, stack, tls[0])
    return master


async def _serve_http(
    config: MasterConfig, routes: list[web.RouteDef], stack: AsyncExitStack, tls: ssl.SSLContext | None
) -> None:
    """Serve the control plane; raises OSError when the port cannot be used."""
    app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares(config.requests_per_second))
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, logger=server_logger, shutdown_timeout=_SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, config.host, config.port, ssl_context=tls).start()


async def _cancel(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _open_journal(config: MasterConfig) -> Journal | None:
    """Open the journal for queued messages; None to keep them in memory. Raises ConfigError."""
    try:
        if config.state is not None:
            return Journal(Path(config.state) / "journal", sync=config.sync)
        return Journal(Path(config.spill) / "spill", durable=False) if config.spill is not None else None
    except OSError as error:
        raise ConfigError(f"the queue's folder cannot be used: {error}") from None


def _close_journal(journal: Journal) -> None:
    try:
        journal.commit()
    except OSError as error:
        logger.error("what was not acknowledged may be lost: %s", error)  # noqa: TRY400  one line is enough
    journal.close()
