"""The HTTP routes of our control plane."""

import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.http import raw_query, require, text, wrong_token
from frameworks.harmonicio.engine.master.coordinator import Coordinator
from frameworks.harmonicio.engine.master.dashboard import render_page
from frameworks.harmonicio.engine.master.fleet import read_stream_spec
from frameworks.harmonicio.engine.master.registry import RegisteredPe
from frameworks.harmonicio.engine.master.worker_report import read_report
from frameworks.harmonicio.engine.metrics import format_metrics, master_metrics
from frameworks.harmonicio.engine.wire.control_messages import Name, NodeAddress

VERSION = "1.0"


class PeHeartbeat(Struct, frozen=True):
    """The body of a heartbeat, which a PE sends about once a second."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    c_name: Name
    host: Annotated[str, Meta(min_length=1, max_length=255)]
    port: Annotated[int, Meta(ge=1, le=65535)]
    worker: Annotated[str, Meta(max_length=300)] = ""
    state: Literal["running", "draining", "gone"] = "running"
    stats: dict[str, float] = {}


class ControlApi:
    """The routes in front of a coordinator.

    Args:
        config: of the master.
        coordinator: handles the requests.
        view: returns what the status and the dashboard show.
        data_port: port number for connectors.
    """

    def __init__(
        self, config: MasterConfig, coordinator: Coordinator, view: Callable[[], dict[str, Any]], data_port: int
    ) -> None:
        self._config, self._coordinator, self._view, self._data_port = config, coordinator, view, data_port

    def routes(self) -> list[web.RouteDef]:
        """Return all routes."""
        return [
            web.get("/v1/info", self.get_info),
            web.get("/v1/status", self.get_status),
            web.post("/v1/beat", self.post_heartbeat),
            web.post("/v1/streams", self.post_stream),
            web.delete("/v1/streams", self.delete_stream),
            web.delete("/v1/pes", self.delete_pe),
            web.put("/status", self.put_report),
            web.get("/health", self.get_health),
            web.get("/ready", self.get_ready),
            web.get("/metrics", self.get_metrics),
            web.get("/v1/samples", self.get_samples),
            web.get("/v1/trace", self.get_trace),
            web.get("/", self.get_dashboard),
        ]

    async def get_info(self, _: web.Request) -> web.Response:
        """Answer with what a connector needs to reach the data port."""
        return web.json_response({"version": VERSION, "data_port": self._data_port, "wire": 1})

    async def get_status(self, request: web.Request) -> web.Response:
        """Answer with the view as JSON."""
        self._require_operator(request)
        return web.json_response(self._view())

    async def post_heartbeat(self, request: web.Request) -> web.Response:
        """Record the heartbeat of a PE; `go_on` false makes it end."""
        require(request, self._config.tokens, ["pe"])
        try:
            beat = msgspec.json.decode(await request.read(), type=PeHeartbeat)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return web.Response(status=400, text=str(error))
        address = NodeAddress(beat.id, beat.host, beat.port)
        pe = RegisteredPe(address, beat.c_name, beat.worker, time.monotonic(), beat.state, dict(beat.stats))
        return web.json_response({"go_on": self._coordinator.record_heartbeat(pe)})

    async def put_report(self, request: web.Request) -> web.Response:
        """Record the report of a worker of any era; with `finished`, the end of one of its containers."""
        query = raw_query(request)
        if self._config.legacy_protocol:
            if (refusal := wrong_token(query)) is not None:
                return refusal
        else:
            require(request, self._config.tokens, ["worker"])
        if "finished" in query:
            ended = self._coordinator.record_pe_end(query["finished"], query.get("c_name", ""))
            return text("Container successfully removed\n" if ended else "Container not found", 200 if ended else 400)
        self._coordinator.record_report(read_report(await request.read(), request.remote or ""))
        return text("Okay")

    async def post_stream(self, request: web.Request) -> web.Response:
        """Set the desired PEs of a stream."""
        self._require_operator(request)
        spec = read_stream_spec(await request.read())
        self._coordinator.fleet.submit(spec)
        return web.json_response({"c_name": spec.c_name, "num": spec.num})

    async def delete_stream(self, request: web.Request) -> web.Response:
        """Drain and end the PEs of a stream; with purge=1 its queued messages are deleted."""
        self._require_operator(request)
        c_name = request.query.get("c_name", "")
        stopped = await self._coordinator.withdraw(c_name, purge=request.query.get("purge") == "1")
        return web.json_response({"c_name": c_name, **stopped})

    async def delete_pe(self, request: web.Request) -> web.Response:
        """Drain and end one PE."""
        self._require_operator(request)
        await self._coordinator.fleet.stop(request.query.get("id", ""))
        return web.json_response({"stopped": request.query.get("id", "")})

    async def get_health(self, _: web.Request) -> web.Response:
        """Answer 200 while the master runs."""
        return web.Response(text="ok\n")

    async def get_ready(self, _: web.Request) -> web.Response:
        """Answer 200 once a worker has reported, 503 before."""
        ready = bool(self._coordinator.registry.workers)
        return web.Response(status=200 if ready else 503, text="ready\n" if ready else "no worker has reported\n")

    async def get_metrics(self, _: web.Request) -> web.Response:
        """Answer with the metrics in the Prometheus text format."""
        body = format_metrics(master_metrics(self._view()))
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def get_samples(self, request: web.Request) -> web.Response:
        """Answer with the samples of worker x CPU x time, as far back as they are kept."""
        self._require_operator(request)
        rows: list[dict[str, Any]] = [msgspec.to_builtins(sample) for sample in self._coordinator.samples]
        return web.json_response({"format": 1, "samples": rows})

    async def get_trace(self, request: web.Request) -> web.Response:
        """Answer with what the queue did since the last request for it; the first one begins to record."""
        self._require_operator(request)
        return web.json_response(body=msgspec.json.encode(self._coordinator.queue.trace.take(time.monotonic())))

    async def get_dashboard(self, request: web.Request) -> web.Response:
        """Answer with a read-only page, without scripts or external resources."""
        self._require_operator(request)
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Refresh": "2"}
        return web.Response(text=render_page(self._view()), content_type="text/html", headers=headers)

    def _require_operator(self, request: web.Request) -> None:
        require(request, self._config.tokens, ["operator"])
