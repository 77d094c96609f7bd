"""The routes of our own control plane."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from frameworks.harmonicio.engine.http import raw_query, require, text, wrong_token
from frameworks.harmonicio.engine.master.dashboard import page
from frameworks.harmonicio.engine.master.fleet import read_wanted
from frameworks.harmonicio.engine.master.legacy_api import read_report
from frameworks.harmonicio.engine.master.registry import Pe
from frameworks.harmonicio.engine.metrics import metrics
from frameworks.harmonicio.engine.wire.control_messages import Name, Place

if TYPE_CHECKING:
    from frameworks.harmonicio.engine.master.service import Master

VERSION = "1.0"


class Beat(Struct, frozen=True):
    """What a PE says of itself, about once a second."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    c_name: Name
    host: Annotated[str, Meta(min_length=1, max_length=255)]
    port: Annotated[int, Meta(ge=1, le=65535)]
    worker: Annotated[str, Meta(max_length=300)] = ""
    state: Literal["running", "draining", "gone"] = "running"
    stats: dict[str, float] = {}


class Api:
    """Our routes in front of a master."""

    def __init__(self, master: "Master") -> None:
        self._master = master

    def routes(self) -> list[web.RouteDef]:
        """All of them."""
        return [
            web.get("/v1/info", self.info),
            web.get("/v1/status", self.status),
            web.post("/v1/beat", self.beat),
            web.post("/v1/streams", self.submit),
            web.delete("/v1/streams", self.withdraw),
            web.delete("/v1/pes", self.stop),
            web.put("/status", self.report),
            web.get("/health", self.health),
            web.get("/ready", self.ready),
            web.get("/metrics", self.metrics),
            web.get("/v1/samples", self.samples),
            web.get("/", self.dashboard),
        ]

    async def info(self, _: web.Request) -> web.Response:
        """What a connector must know to come to the data port."""
        return web.json_response({"version": VERSION, "data_port": self._master.data_port_number, "wire": 1})

    async def status(self, request: web.Request) -> web.Response:
        self._master.require_operator(request)
        return web.json_response(self._master.view())

    async def beat(self, request: web.Request) -> web.Response:
        require(request, self._master.config.tokens, ["pe"])
        try:
            beat = msgspec.json.decode(await request.read(), type=Beat)
        except msgspec.DecodeError as problem:
            return web.Response(status=400, text=str(problem))
        place = Place(beat.id, beat.host, beat.port)
        known = self._master.heard_pe(
            Pe(place, beat.c_name, beat.worker, time.monotonic(), beat.state, dict(beat.stats))
        )
        return web.json_response({"go_on": known})

    async def report(self, request: web.Request) -> web.Response:
        """A worker's report, of any era; with `finished`, that a container of it has ended."""
        query = raw_query(request)
        if self._master.config.old_wire:
            if (problem := wrong_token(query)) is not None:
                return problem
        else:
            require(request, self._master.config.tokens, ["worker"])
        if "finished" in query:
            ended = self._master.pe_ended(query["finished"], query.get("c_name", ""))
            return text("Container successfully removed\n" if ended else "Container not found", 200 if ended else 400)
        self._master.heard_worker(read_report(await request.read(), request.remote or ""))
        return text("Okay")

    async def submit(self, request: web.Request) -> web.Response:
        """Want so many PEs of a stream."""
        self._master.require_operator(request)
        wanted = read_wanted(await request.read())
        self._master.fleet.submit(wanted)
        return web.json_response({"c_name": wanted.c_name, "num": wanted.num})

    async def withdraw(self, request: web.Request) -> web.Response:
        """Want no PEs of a stream any more: those that run are drained; with purge=1 its queue is thrown away."""
        self._master.require_operator(request)
        c_name = request.query.get("c_name", "")
        stopped = await self._master.withdraw(c_name, purge=request.query.get("purge") == "1")
        return web.json_response({"c_name": c_name, **stopped})

    async def stop(self, request: web.Request) -> web.Response:
        """Drain and end one PE."""
        self._master.require_operator(request)
        await self._master.fleet.stop(request.query.get("id", ""))
        return web.json_response({"stopped": request.query.get("id", "")})

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(self, _: web.Request) -> web.Response:
        """200 once a worker has reported, 503 before."""
        ready = bool(self._master.registry.workers)
        return web.Response(status=200 if ready else 503, text="ready\n" if ready else "no worker has reported\n")

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=metrics(self._master.view()).encode(), headers={"Content-Type": "text/plain; version=0.0.4"}
        )

    async def samples(self, request: web.Request) -> web.Response:
        """Worker x CPU x time, as far back as they are kept."""
        self._master.require_operator(request)
        rows: list[dict[str, Any]] = [msgspec.to_builtins(sample) for sample in self._master.samples]
        return web.json_response({"format": 1, "samples": rows})

    async def dashboard(self, request: web.Request) -> web.Response:
        """Read-only; no script, nothing from elsewhere."""
        self._master.require_operator(request)
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Refresh": "2"}
        return web.Response(text=page(self._master.view()), content_type="text/html", headers=headers)
