"""The worker as a whole: its routes, and the loop that reports to the master."""

import asyncio
import logging
import os
import socket
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from aiohttp import web
from msgspec import ValidationError as Wrong
from msgspec import convert

from frameworks.harmonicio.engine.config import WorkerConfig
from frameworks.harmonicio.engine.errors import ConfigError, HarmonicError, Refused
from frameworks.harmonicio.engine.http import MAX_BODY, guarded, loads, raw_query, require, text, wrong_token
from frameworks.harmonicio.engine.metrics import label_text
from frameworks.harmonicio.engine.tls import client_context, server_context
from frameworks.harmonicio.engine.wire.literal import read_literal, write_literal
from frameworks.harmonicio.engine.worker.docker import DockerRuntime
from frameworks.harmonicio.engine.worker.environment import Asked, environment_of
from frameworks.harmonicio.engine.worker.ports import Ports
from frameworks.harmonicio.engine.worker.processes import ProcessRuntime
from frameworks.harmonicio.engine.worker.runtime import Container, Runtime, Start

logger = logging.getLogger(__name__)

_REQUESTS_PER_SECOND = 200
_STOP_SECONDS = 10.0


class Worker:
    """Runs within a loop, until `close`."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.name = socket.gethostname() if config.name == "auto" else config.name
        logs = Path(config.logs) if config.logs is not None else None
        self._runtime: Runtime = (
            DockerRuntime(config.docker_socket) if config.runtime == "docker" else ProcessRuntime(logs)
        )
        self._ports = Ports(*config.data_ports, config.host)
        self._lock = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self._task: asyncio.Task[None] | None = None
        self._used: dict[str, tuple[float, float]] = {}
        self._report_now = asyncio.Event()
        self.port, self._reached = config.port, True
        psutil.cpu_percent()  # what it says next is since now

    async def open(self) -> None:
        """Listen and begin to report; raises ConfigError when the port cannot be had."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=guarded(_REQUESTS_PER_SECOND))
        app.add_routes([web.get("/status", self.status), web.get("/docker", self.ask), web.post("/docker", self.create),
                        web.delete("/docker", self.remove), web.get("/health", self.health), web.get("/ready", self.ready),
                        web.get("/metrics", self.metrics)])  # fmt: skip
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
        await self._runner.setup()
        try:
            tls = server_context(self.config.tls) if self.config.tls is not None else None
            site = web.TCPSite(self._runner, self.config.host, self.config.port, ssl_context=tls)
            await site.start()
        except OSError as problem:
            raise ConfigError(f"the worker cannot listen at {self.config.host}:{self.config.port}: {problem}") from None
        self.port = self._runner.addresses[0][1]
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5))
        self._task = asyncio.create_task(self._report_for_ever())

    async def close(self) -> None:
        """Stop listening, then drain and end every PE."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        await asyncio.to_thread(self._runtime.close, _STOP_SECONDS)
        if self._session is not None:
            await self._session.close()

    # routes

    async def status(self, request: web.Request) -> web.Response:
        if (problem := self._stranger(request)) is not None:
            return problem
        return text(write_literal(await self._state()))

    async def ask(self, request: web.Request) -> web.Response:
        if (problem := self._stranger(request)) is not None:
            return problem
        query = raw_query(request)
        match query.get("command"):
            case None:
                return text("Command is required.", 401)
            case "status":
                return text(write_literal((await self._state())["docker"]))
            case "finished":
                return await self._finished(query)
            case _:
                return text("")

    async def create(self, request: web.Request) -> web.Response:
        """Start PEs; answers the id of the first: 12 characters."""
        if (problem := self._stranger(request)) is not None:
            return problem
        if raw_query(request).get("command") != "create":
            return text("Command is required.", 401)
        try:
            asked = convert(read_literal(await request.read()), Asked, strict=False)
        except (Wrong, HarmonicError) as problem:
            return text(f"Create container error! {problem}", 400)
        try:
            ids = [await self._start(asked) for _ in range(max(1, min(asked.num, self.config.most_pes)))]
        except HarmonicError as problem:
            logger.warning("a PE of %s was not started: %s", asked.c_name, problem)
            return text(f"Create container error! {problem}", 400)
        self._report_now.set()
        return text(ids[0])

    async def remove(self, request: web.Request) -> web.Response:
        """Drain and end one PE."""
        if (problem := self._stranger(request)) is not None:
            return problem
        try:
            await asyncio.to_thread(self._runtime.stop, raw_query(request).get("short_id", ""))
        except Refused as problem:
            return text(str(problem), 404)
        self._report_now.set()
        return text("Okay")

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(self, _: web.Request) -> web.Response:
        """200 while the master answers to our reports."""
        return web.Response(
            status=200 if self._reached else 503, text="ready\n" if self._reached else "the master does not answer\n"
        )

    async def metrics(self, _: web.Request) -> web.Response:
        running = [
            container
            for container in await asyncio.to_thread(self._runtime.containers)
            if container.status == "running"
        ]
        lines = ["# HELP harmonicio_worker_pes PEs that run here", "# TYPE harmonicio_worker_pes gauge",
                 f"harmonicio_worker_pes {len(running)}",
                 "# HELP harmonicio_worker_pe_cpu_seconds_total CPU time that a PE has used",
                 "# TYPE harmonicio_worker_pe_cpu_seconds_total counter"]  # fmt: skip
        for one in running:
            labels = label_text({"pe": one.short_id, "stream": one.c_name})
            lines.append(f"harmonicio_worker_pe_cpu_seconds_total{labels} {one.cpu_seconds:g}")
        return web.Response(
            body=("\n".join(lines) + "\n").encode(), headers={"Content-Type": "text/plain; version=0.0.4"}
        )

    def _stranger(self, request: web.Request) -> web.Response | None:
        """The answer to who may not ask; None to who may."""
        if self.config.old_wire:
            return wrong_token({"token": "None"} if "token" in raw_query(request) else {})
        require(request, self.config.tokens, ["worker", "operator"])
        return None

    # PEs

    async def _start(self, asked: Asked) -> str:
        image = asked.image or asked.c_name
        if not any(fnmatchcase(image, allowed) for allowed in self.config.allow):
            raise Refused(
                f"{image!r} is not among the images that may run here: {', '.join(self.config.allow) or 'none (--allow)'}"
            )
        if asked.cpu_share is not None and not 0 < asked.cpu_share <= 1:
            raise Refused(f"a CPU share is above 0 and at most 1, not {asked.cpu_share:g}")
        async with self._lock:
            containers = await asyncio.to_thread(self._runtime.containers)
            if sum(container.status == "running" for container in containers) >= self.config.most_pes:
                raise Refused(f"{self.config.most_pes} PEs run here already")
            port = self._ports.take()
            short_id = ""
            try:
                start = Start(
                    c_name=asked.c_name, image=image, port=port, environment=environment_of(asked, self.config, port, self.port),
                    cpu_share=asked.cpu_share or self.config.cpu, memory_bytes=asked.memory_bytes or self.config.memory_bytes,
                    settings=asked.settings,
                )  # fmt: skip
                short_id = await asyncio.to_thread(self._runtime.start, start)
            finally:
                if not short_id:
                    self._ports.give_back(port)
            return short_id

    async def _finished(self, query: dict[str, str]) -> web.Response:
        """An old PE that was idle for too long asks whether it may go: only if it is ours."""
        containers = await asyncio.to_thread(self._runtime.containers)
        short_id = query.get("short_id", "")
        if not any(container.short_id == short_id for container in containers):
            return text("Container not found", 404)
        status = await self._tell({"token": "None", "finished": short_id, "c_name": query.get("c_name", "")}, b"")
        if status != 200:
            return text("The master did not agree", 400)
        return text("ACK: Container terminated, master notified.")

    # reports

    async def _report_for_ever(self) -> None:
        while True:
            self._report_now.clear()
            try:
                state = await self._state()
                status = await self._tell({"token": "None"}, write_literal(state).encode())
                if (status == 200) != self._reached:
                    logger.warning(
                        "the master at %s:%d answers %d", self.config.master_host, self.config.master_port, status
                    )
                self._reached = status == 200
                for ended in await asyncio.to_thread(self._runtime.remove_ended):
                    self._ports.give_back(ended.port)
                    logger.info("PE %s of %s ended: %s", ended.short_id, ended.c_name, ended.status)
            except HarmonicError as problem:
                logger.warning("no report: %s", problem)
            await self._pause()

    async def _pause(self) -> None:
        """Until the next report is due, or something is to be told at once; a PE that ends is."""
        until = time.monotonic() + self.config.report_seconds
        while time.monotonic() < until and not self._report_now.is_set():
            await asyncio.sleep(min(0.25, self.config.report_seconds))
            if self._runtime.any_ended():
                return

    async def _tell(self, query: dict[str, str], body: bytes) -> int:
        """Send the master a report; the answer's status, 0 when there was none."""
        assert self._session is not None, "open comes first"
        config = self.config
        host = f"[{config.master_host}]" if ":" in config.master_host else config.master_host
        headers = {"Authorization": f"Bearer {config.tokens.worker}"} if config.tokens.worker else {}
        try:
            where = f"{'http' if config.tls is None else 'https'}://{host}:{config.master_port}/status"
            tls = client_context(config.tls) if config.tls is not None else True
            async with self._session.put(where, params=query, data=body, headers=headers, ssl=tls) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    async def _state(self) -> dict[str, Any]:
        """What the old wire's reports hold, and what ours adds."""
        containers = await asyncio.to_thread(self._runtime.containers)
        running = [container for container in containers if container.status == "running"]
        shares = {container.short_id: self._share(container) for container in running}
        images = sorted({container.c_name for container in running})
        averages = {
            image: {"avg_cpu": sum(of) / len(of)}
            for image in images
            if (of := [share for one in running if one.c_name == image and (share := shares[one.short_id]) is not None])
        }
        return {
            "node_name": self.name,
            "node_role": 2,
            "node_addr": self.config.reached_at,
            "node_port": self.port,
            **loads(),
            "docker": [
                {
                    "short_id": container.short_id,
                    "image": container.image,
                    "status": container.status,
                    "c_name": container.c_name,
                }
                for container in containers
            ],
            "local_images": images,
            "local_image_stats": averages,
            "cpu": psutil.cpu_percent() / 100,
            "cpu_allotted": sum(container.cpu_share or 0.0 for container in running),
            "cores": os.cpu_count() or 1,
        }

    def _share(self, container: Container) -> float | None:
        """The share of all cores that a PE has used since the last look; None at the first."""
        now, used = time.monotonic(), container.cpu_seconds
        before = self._used.get(container.short_id)
        self._used[container.short_id] = (now, used)
        while len(self._used) > 4 * self.config.most_pes:
            del self._used[next(iter(self._used))]
        if before is None or now <= before[0]:
            return None
        return max(0.0, used - before[1]) / (now - before[0]) / (os.cpu_count() or 1)
