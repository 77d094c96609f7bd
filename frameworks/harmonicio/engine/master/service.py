"""The master as a whole: its parts, its two ports, and the loop that looks after them."""

import asyncio
import logging
import signal
import socket
import time
from collections import deque
from itertools import count
from pathlib import Path
from typing import Any

from aiohttp import web
from msgspec import Struct

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import ConfigError, Refused
from frameworks.harmonicio.engine.http import MAX_BODY, can_be_host, guarded, require
from frameworks.harmonicio.engine.master.api import Api
from frameworks.harmonicio.engine.master.data_port import DataPort
from frameworks.harmonicio.engine.master.dispatch import Dispatcher
from frameworks.harmonicio.engine.master.fleet import Fleet, Wanted
from frameworks.harmonicio.engine.master.irm_loop import IrmLoop
from frameworks.harmonicio.engine.master.journal import Journal
from frameworks.harmonicio.engine.master.legacy_api import OldWire
from frameworks.harmonicio.engine.master.queue import Backlog, Bounds
from frameworks.harmonicio.engine.master.registry import Pe, Registry, Worker
from frameworks.harmonicio.engine.master.view import view_of
from frameworks.harmonicio.engine.master_log import text_of
from frameworks.harmonicio.engine.tls import client_context, server_context
from frameworks.harmonicio.engine.wire.control_messages import Place

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.25
SAMPLE_EVERY = 1.0
GRACE = 3.0
"""Seconds that PEs of an earlier master have to be heard of before others are started in their place."""
SAMPLES = 100_000


class Sample(Struct, frozen=True, array_like=True):
    """CPU of one worker at one moment: Unix seconds, worker, share of its CPU that is used, share that was allotted, PEs."""

    at: float
    worker: str
    used: float | None
    allotted: float | None
    pes: int


class Master:
    """Runs within a loop, until `close`."""

    def __init__(self, config: MasterConfig) -> None:
        self.config = config
        state = Path(config.state) if config.state is not None else None
        self._journal = _journal(config)
        self._durable = self._journal if self._journal is not None and self._journal.durable else None
        self.registry = Registry(
            pe_seconds=config.pe_seconds, worker_seconds=config.worker_seconds, lease_seconds=config.lease_seconds
        )
        self.backlog = Backlog(Bounds(config.queue_messages, config.queue_bytes, config.memory_bytes), self._journal)
        self.fleet = Fleet(self.registry, config.tokens.worker, state, tls=config.tls)
        self._tls = (server_context(config.tls), client_context(config.tls)) if config.tls is not None else (None, None)
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)
        self.irm = IrmLoop(config, self.registry, self.backlog, self.fleet) if config.irm == "on" else None
        self._dispatchers: dict[str, tuple[Dispatcher, asyncio.Task[None]]] = {}
        self._delivered = 0
        self._turn = count()
        self._tasks: list[asyncio.Task[None]] = []
        self._runner: web.AppRunner | None = None
        self._data_port: DataPort | None = None
        self.data_port_number = config.data_port

    async def open(self) -> None:
        """Listen; raises ConfigError when an address or port cannot be had."""
        config = self.config
        try:
            listener = socket.create_server((config.host, config.data_port), family=_family(config.host), backlog=512)
            self.data_port_number = listener.getsockname()[1]
            self._data_port = DataPort(
                listener, self.registry, self.backlog, self._durable, token=config.tokens.connector, compat=config.old_wire,
                most_message=config.message_bytes, queued=self._queued, tls=self._tls[0],
            )  # fmt: skip
            app = web.Application(client_max_size=MAX_BODY, middlewares=guarded(config.requests_per_second))
            app.add_routes(Api(self).routes())
            if config.old_wire:
                app.add_routes(OldWire(self).routes())
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
            await self._runner.setup()
            await web.TCPSite(self._runner, config.host, config.port, ssl_context=self._tls[0]).start()
        except OSError as problem:
            raise ConfigError(
                f"the master cannot listen at {config.host}:{config.port} and {config.data_port}: {problem}"
            ) from None
        for c_name in self.backlog.streams:
            self._queued(c_name)
        self._tasks = [asyncio.create_task(self._look_after()), asyncio.create_task(self._reconcile())]
        if self.irm is not None:
            self._tasks.append(asyncio.create_task(self.irm.run()))
        for task in self._tasks:
            task.add_done_callback(_end_with)

    async def close(self) -> None:
        """Stop listening; what is queued stays in the journal."""
        tasks = [*self._tasks, *(task for _, task in self._dispatchers.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._data_port is not None:
            self._data_port.close()
        await self.fleet.close()
        if self._journal is not None:
            try:
                self._journal.commit()
            except OSError as problem:
                logger.error("what was not acknowledged may be lost: %s", problem)  # noqa: TRY400  one line is enough
            self._journal.close()

    # what is heard

    def heard_pe(self, pe: Pe) -> bool:
        """A PE says it is there; False tells it to leave. Raises Refused when nobody can be where it says it is."""
        if not can_be_host(pe.place.host):
            raise Refused(f"{pe.place.host!r} is neither an address nor the name of a host")
        if pe.state == "gone":
            self.pe_ended(pe.place.id, pe.c_name)
            return False
        if self.registry.beat(pe, time.monotonic()):
            self._changed(pe.c_name)
        return pe.place.id not in self.registry.gone

    def heard_worker(self, worker: Worker) -> None:
        """A worker reports; containers that have ended are PEs that have."""
        self.registry.report(worker, time.monotonic())
        for container in worker.report.get("docker", []):
            if isinstance(container, dict) and str(container.get("status", "")).startswith("exited"):
                self.pe_ended(str(container.get("short_id", "")), "")
        cpu, allotted = worker.report.get("cpu"), worker.report.get("cpu_allotted")
        self.samples.append(
            Sample(
                time.time(),
                worker.node_name,
                float(cpu) if isinstance(cpu, int | float) else None,
                float(allotted) if isinstance(allotted, int | float) else None,
                len(worker.report.get("docker", [])),
            )
        )

    def pe_ended(self, pe_id: str, c_name: str) -> bool:
        """A PE has ended; whether it was known."""
        pe = self.registry.pes.get(pe_id)
        known = pe_id not in self.registry.gone and self.registry.end(pe_id, time.monotonic())
        if pe is not None:
            self._changed(pe.c_name)
        return known or any(one.place.id == pe_id for one in self.registry.idle.get(c_name, {}).values())

    def next_place(self, c_name: str) -> Place | None:
        """A PE for one message of an old connector: ours in turn, or the old one that has waited longest."""
        places = self.registry.places(c_name)
        if places:
            return places[next(self._turn) % len(places)]
        pe = self.registry.hand_out(c_name, time.monotonic())
        return pe.place if pe is not None else None

    def request_containers(self, wanted: Wanted) -> None:
        """What the IRM era asks for: with the IRM on, it decides where; otherwise so many more are wanted."""
        if self.irm is not None:
            self.irm.request(wanted)
            return
        known = self.fleet.wanted.get(wanted.c_name)
        more = Wanted(
            c_name=wanted.c_name,
            num=wanted.num + (known.num if known else 0),
            image=wanted.image,
            settings=wanted.settings,
        )
        self.fleet.submit(more)

    def irm_knows(self, c_name: str) -> bool:
        """Whether containers of that name were asked of the IRM."""
        return self.irm is not None and self.irm.knows(c_name)

    async def withdraw(self, c_name: str, *, purge: bool) -> dict[str, int]:
        """Drain and end the PEs of a stream."""
        self.fleet.forget(c_name)
        pes = [pe.place.id for pe in self.registry.pes.values() if pe.c_name == c_name]
        pes += [pe_id for pe_id, (name, _, _) in self.fleet.starting.items() if name == c_name]
        await asyncio.gather(*(self.fleet.stop(pe_id) for pe_id in pes))
        return {"stopped": len(pes), "purged": self.backlog.purge(c_name) if purge else 0}

    def require_operator(self, request: web.Request) -> None:
        """Raise 401 unless the request shows the operator's token."""
        require(request, self.config.tokens, ["operator"])

    # what is told

    def view(self) -> dict[str, Any]:
        """Everything that dashboard, metrics and `harmonicio status` show."""
        port = self._data_port
        totals = {
            "queue_bytes": self.backlog.bytes,
            "connectors": port.connectors if port else 0,
            "queued_total": port.accepted if port else 0,
            "delivered_total": self._delivered + sum(one.delivered for one, _ in self._dispatchers.values()),
            "refused_total": port.refused if port else 0,
        }
        shown = view_of(self.registry, self.backlog, self.fleet, time.monotonic())
        return {
            "name": self.config.name,
            **shown,
            "totals": totals,
            "irm": self.irm.view() if self.irm is not None else None,
        }

    # what is looked after

    def _queued(self, c_name: str) -> None:
        """Something of a stream is in the queue, until its dispatcher ends: streams that are empty take up nothing."""
        if c_name not in self._dispatchers:
            token = self.config.tokens.connector
            dispatcher = Dispatcher(c_name, self.backlog, self.registry, token, tls=self._tls[1])
            task = asyncio.create_task(self._dispatch(dispatcher, c_name))
            task.add_done_callback(_end_with)
            self._dispatchers[c_name] = (dispatcher, task)
        self._dispatchers[c_name][0].changed()

    async def _dispatch(self, dispatcher: Dispatcher, c_name: str) -> None:
        """Have a dispatcher run to its end, and count what it did."""
        try:
            await dispatcher.run()
        finally:
            del self._dispatchers[c_name]
            self._delivered += dispatcher.delivered

    def _changed(self, c_name: str) -> None:
        """PEs of a stream came or went."""
        if self._data_port is not None:
            self._data_port.tell_leases(c_name)
        if c_name in self._dispatchers:
            self._dispatchers[c_name][0].changed()

    async def _look_after(self) -> None:
        sampled = 0.0
        while True:
            now = time.monotonic()
            if now > sampled + SAMPLE_EVERY and (self.registry.pes or self.backlog.messages):
                sampled = now
                self._log_sample()
            pes, workers = self.registry.expire(now)
            for pe_id in pes:
                logger.warning("PE %s was not heard of for %g s: expired", pe_id, self.config.pe_seconds)
            for name in workers:
                logger.warning("worker %s was not heard of for %g s: expired", name, self.config.worker_seconds)
            if self._data_port is not None:
                self._data_port.look(now)
                if pes:
                    self._data_port.tell_leases()
            await asyncio.sleep(LOOK_EVERY)

    def _log_sample(self) -> None:
        """One line of the log: the queue, the leases, each PE, each worker."""
        view = self.view()
        queued = {row["c_name"]: row["queued"] for row in view["streams"]}
        pes = [
            (row["id"], row["state"], row["stats"].get("processed"), row["stats"].get("waiting")) for row in view["pes"]
        ]
        workers = [(row["name"], row["cpu"], row["pes"]) for row in view["workers"]]
        logger.info("%s", text_of({"queued": queued, "leases": len(view["leases"]), "pes": pes, "workers": workers}))

    async def _reconcile(self) -> None:
        if self.fleet.wanted:  # an earlier master's PEs go on, and have not been heard of yet
            await asyncio.sleep(GRACE)
        while True:
            await self.fleet.reconcile(time.monotonic())
            await asyncio.sleep(LOOK_EVERY)


def _end_with(task: "asyncio.Task[None]") -> None:
    """A master that does only half of its work is worse than none: whoever supervises it starts it again."""
    if not task.cancelled() and (problem := task.exception()) is not None:
        logger.error("the master ends: %r", problem, exc_info=problem)
        signal.raise_signal(signal.SIGTERM)


def _journal(config: MasterConfig) -> Journal | None:
    """Where queued messages go besides memory; raises ConfigError."""
    try:
        if config.state is not None:
            return Journal(Path(config.state) / "journal", sync=config.sync)
        return Journal(Path(config.spill) / "spill", durable=False) if config.spill is not None else None
    except OSError as problem:
        raise ConfigError(f"the queue's folder cannot be used: {problem}") from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
