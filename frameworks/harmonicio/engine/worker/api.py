"""The HTTP routes of a worker, of every era."""

import logging

from aiohttp import web
from msgspec import ValidationError, convert
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.errors import HarmonicError, RefusedError
from frameworks.harmonicio.engine.http import raw_query, require, text, wrong_token
from frameworks.harmonicio.engine.metrics import format_metrics
from frameworks.harmonicio.engine.wire.literal import read_literal, write_literal
from frameworks.harmonicio.engine.worker.environment import CreateRequest
from frameworks.harmonicio.engine.worker.pe_host import PeHost
from frameworks.harmonicio.engine.worker.reports import Reporter

logger = logging.getLogger(__name__)


class WorkerApi:
    """The routes in front of the PEs of a worker."""

    def __init__(self, config: WorkerConfig, host: PeHost, reporter: Reporter) -> None:
        self._config, self._host, self._reporter = config, host, reporter

    def routes(self) -> list[web.RouteDef]:
        """Return all routes."""
        return [
            web.get("/status", self.get_status),
            web.get("/docker", self.get_docker),
            web.post("/docker", self.post_docker),
            web.delete("/docker", self.delete_docker),
            web.get("/health", self.get_health),
            web.get("/ready", self.get_ready),
            web.get("/metrics", self.get_metrics),
        ]

    async def get_status(self, request: web.Request) -> web.Response:
        """Answer with the report."""
        if (refusal := self._check_token(request)) is not None:
            return refusal
        return text(write_literal(await self._host.report()))

    async def get_docker(self, request: web.Request) -> web.Response:
        """Answer with the list of PEs, or whether an idle PE may end."""
        if (refusal := self._check_token(request)) is not None:
            return refusal
        query = raw_query(request)
        match query.get("command"):
            case None:
                return text("Command is required.", 401)
            case "status":
                return text(write_literal((await self._host.report())["docker"]))
            case "finished":
                return await self._finish(query)
            case _:
                return text("")

    async def post_docker(self, request: web.Request) -> web.Response:
        """Start PEs; answer with the id of the first: 12 characters."""
        if (refusal := self._check_token(request)) is not None:
            return refusal
        if raw_query(request).get("command") != "create":
            return text("Command is required.", 401)
        try:
            created = convert(read_literal(await request.read()), CreateRequest, strict=False)
        except (ValidationError, HarmonicError) as error:
            return text(f"Create container error! {error}", 400)
        try:
            ids = [await self._host.start(created) for _ in range(max(1, min(created.num, self._config.most_pes)))]
        except HarmonicError as error:
            logger.warning("a PE of %s was not started: %s", created.c_name, error)
            return text(f"Create container error! {error}", 400)
        self._reporter.report_now()
        return text(ids[0])

    async def delete_docker(self, request: web.Request) -> web.Response:
        """Drain and end one PE."""
        if (refusal := self._check_token(request)) is not None:
            return refusal
        try:
            await self._host.stop(raw_query(request).get("short_id", ""))
        except RefusedError as error:
            return text(str(error), 404)
        self._reporter.report_now()
        return text("Okay")

    async def get_health(self, _: web.Request) -> web.Response:
        """Answer 200 while the worker runs."""
        return web.Response(text="ok\n")

    async def get_ready(self, _: web.Request) -> web.Response:
        """Answer 200 while the master answers reports."""
        if self._reporter.reached:
            return web.Response(text="ready\n")
        return web.Response(status=503, text="the master does not answer\n")

    async def get_metrics(self, _: web.Request) -> web.Response:
        """Answer with the metrics in the Prometheus text format."""
        running = await self._host.running()
        pes = GaugeMetricFamily("harmonicio_worker_pes", "PEs that run here", value=len(running))
        cpu_text = "CPU time that a PE has used"
        cpu = CounterMetricFamily("harmonicio_worker_pe_cpu_seconds", cpu_text, labels=["pe", "stream"])
        for one in running:
            cpu.add_metric([one.short_id, one.c_name], one.cpu_seconds)
        body = format_metrics([pes, cpu])
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4"})

    def _check_token(self, request: web.Request) -> web.Response | None:
        """Return the refusal of a request without a token, or raise HTTP 401; None when the request is allowed."""
        if self._config.legacy_protocol:
            return wrong_token({"token": "None"} if "token" in raw_query(request) else {})
        require(request, self._config.tokens, ["worker", "operator"])
        return None

    async def _finish(self, query: dict[str, str]) -> web.Response:
        """Answer an idle legacy PE that asks to end: it must be one of this worker."""
        short_id = query.get("short_id", "")
        if not any(container.short_id == short_id for container in await self._host.containers()):
            return text("Container not found", 404)
        if not await self._reporter.report_end(short_id, query.get("c_name", "")):
            return text("The master did not agree", 400)
        return text("ACK: Container terminated, master notified.")
