"""The routes of 0.2, 0.3 and of the IRM era, with their literal answers; bodies are parsed, never evaluated."""

import time
from typing import TYPE_CHECKING, Any

from aiohttp import web

from frameworks.harmonicio.engine.errors import Refused
from frameworks.harmonicio.engine.http import NO_TOKEN, can_be_host, loads, raw_query, text, wrong_token
from frameworks.harmonicio.engine.master.dashboard import page
from frameworks.harmonicio.engine.master.fleet import read_wanted
from frameworks.harmonicio.engine.master.registry import Pe, Worker
from frameworks.harmonicio.engine.wire.control_messages import Place
from frameworks.harmonicio.engine.wire.literal import read_literal, write_literal

if TYPE_CHECKING:
    from frameworks.harmonicio.engine.master.service import Master

_TUPLES = 1000
"""Requests of old connectors that are remembered for the dashboard; the original kept all, for ever."""


class OldWire:
    """The old control plane in front of a master."""

    def __init__(self, master: "Master") -> None:
        self._master = master
        self._tuples: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[web.RouteDef]:
        """All of them."""
        return [
            web.get("/status", self.status),
            web.get("/streamRequest", self.endpoint),
            web.post("/streamRequest", self.poll),
            web.get("/messagesQuery", self.query),
            web.post("/containerRequest", self.request_containers),
            web.get("/containerRequest", self.containers_requested),
        ]

    async def status(self, request: web.Request) -> web.Response:
        query = raw_query(request)
        if (problem := wrong_token(query)) is not None:
            return problem
        config = self._master.config
        return text(write_literal({"node_name": config.name, "node_role": 1, "node_addr": config.host, **loads()}))

    async def endpoint(self, request: web.Request) -> web.Response:
        """Where a connector may send one message: a PE, or the queue; 406 when that is full."""
        query = raw_query(request)
        needed = [("token", NO_TOKEN), ("c_name", "Container name is required."), ("c_os", "Container os is required."),
                  ("source", "Data digest is required."), ("digest", "Data digest is required.")]  # fmt: skip
        for name, problem in needed:
            if name not in query:
                return text(problem, 401)
        if "priority" in query and not query["priority"].isdigit():
            return text("Container priority is not digit.", 401)
        self._remember(query)
        master, c_name = self._master, query["c_name"]
        place = master.next_place(c_name)
        if place is not None:
            return text(write_literal({"node_addr": place.host, "node_port": place.port, "node_role": 2, "m_cmd": []}))
        if 0 in master.backlog.room():
            return text("The queue is full.", 406)
        where = {"node_addr": master.config.host, "node_port": master.data_port_number, "node_role": 4, "m_cmd": []}
        return text(write_literal(where))

    async def poll(self, request: web.Request) -> web.Response:
        """An old PE is idle: it is given a queued message, or its place is remembered."""
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        if any(name not in query for name in ("batch_addr", "batch_port", "batch_status", "c_name")):
            return text("Invalid parameters!", 406)
        port, status, c_name = query["batch_port"], query["batch_status"], query["c_name"]
        numbers = port.isdecimal() and status.isdecimal() and 0 < int(port) < 65536
        if not numbers or not can_be_host(query["batch_addr"]) or not 0 < len(c_name) <= 999:
            return text("Invalid data type!", 406)
        place = Place(query.get("short_id", "") or f"{query['batch_addr']}:{port}", query["batch_addr"], int(port))
        pe = Pe(place, c_name, worker="", heard=time.monotonic(), state="idle")
        backlog, registry = self._master.backlog, self._master.registry
        if backlog.peek(c_name) is None:
            registry.register_idle(pe)
            return text("No item in queue")
        if int(status) != 0:
            registry.register_idle(pe)
            return text("OK")
        taken = backlog.take_message(c_name)
        registry.withdraw(pe)
        if taken is None:
            return text("No item in queue")
        entry, message = taken
        answer, sent = web.Response(status=203, body=message, headers={"Content-Type": "Bytes"}), False
        try:
            await answer.prepare(request)
            await answer.write_eof()
            sent = True
        finally:  # also when the PE has gone, and when the master is told to end
            (backlog.done if sent else backlog.back)(c_name, entry.key)
        return answer

    async def query(self, request: web.Request) -> web.Response:
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        match query.get("command"):
            case None:
                return text("No command specified.", 406)
            case "queueLength":
                return text(write_literal(self._master.backlog.lengths()))
            case "current_id":
                return text("None")
            case "verbose":
                return text(write_literal(self._verbose()))
            case "verbose_html":
                return web.Response(text=page(self._master.view()), content_type="text/html")
            case _:
                return text("")

    async def request_containers(self, request: web.Request) -> web.Response:
        """The IRM era's request: so many containers of an image."""
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        if query.get("type") != "new_container":
            return text("Invalid parameters!", 406)
        self._master.require_operator(request)
        try:
            wanted = read_wanted(await request.read())
        except Refused as problem:
            return text(str(problem), 400)
        self._master.request_containers(wanted)
        return text("Containers queued for creation!")

    async def containers_requested(self, request: web.Request) -> web.Response:
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        known = query.get("c_name") in self._master.fleet.wanted or self._master.irm_knows(query.get("c_name", ""))
        return text("" if query.get("type") == "poll_container" and known else "Not found", 200 if known else 404)

    def _remember(self, query: dict[str, str]) -> None:
        now = int(time.time())
        values = {name: query.get(name, "0") for name in ("digest", "c_name", "c_os", "source", "priority")}
        self._tuples[f"{query['digest'][:12]}:{now}"] = {**values, "status": 0, "last_upd": now}
        while len(self._tuples) > _TUPLES:
            del self._tuples[next(iter(self._tuples))]

    def _verbose(self) -> dict[str, Any]:
        registry = self._master.registry
        idle = {
            name: [
                {
                    "batch_addr": pe.place.host,
                    "batch_port": pe.place.port,
                    "batch_status": 0,
                    "c_name": name,
                    "last_upd": int(pe.heard),
                }
                for pe in pes.values()
            ]
            for name, pes in registry.idle.items()
        }
        workers = {worker.node_addr: worker.report for worker in registry.workers.values()}
        return {"WORKERS": workers, "CONTAINERS": idle, "TUPLES": self._tuples, "MSG": self._master.backlog.lengths()}


def read_report(body: bytes, remote: str) -> Worker:
    """A worker's report, of any era; raises WireError when it cannot be parsed, Refused when it is no report."""
    report = read_literal(body)
    if not isinstance(report, dict) or not isinstance(report.get("node_addr"), str):
        raise Refused("a report is a mapping with node_addr")
    port = report.get("node_port", 0)
    if not isinstance(port, int) or not 0 <= port < 65536 or not isinstance(report.get("docker", []), list):
        raise Refused("node_port is a port, docker a list")
    host = report["node_addr"] or remote
    if not can_be_host(host):
        raise Refused(f"{host[:255]!r} is neither an address nor the name of a host")
    report["last_upd"] = int(time.time())
    return Worker(host, port, str(report.get("node_name", ""))[:255], time.monotonic(), report)
