"""The HTTP routes of 0.2, 0.3 and the IRM era, with their literal answers; bodies are parsed, never evaluated."""

import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from frameworks.harmonicio.engine.config import MasterConfig
from frameworks.harmonicio.engine.errors import RefusedError
from frameworks.harmonicio.engine.http import (
    NO_TOKEN,
    can_be_host,
    load_averages,
    raw_query,
    require,
    text,
    wrong_token,
)
from frameworks.harmonicio.engine.master.coordinator import Coordinator
from frameworks.harmonicio.engine.master.dashboard import render_page
from frameworks.harmonicio.engine.master.fleet import read_stream_spec
from frameworks.harmonicio.engine.master.registry import RegisteredPe
from frameworks.harmonicio.engine.wire.control_messages import NodeAddress
from frameworks.harmonicio.engine.wire.literal import write_literal

_MAX_TUPLES = 1000
"""Requests of legacy connectors that are kept for `verbose`; the original keeps all, for ever."""
_MAX_DIGITS = 5


class LegacyApi:
    """The legacy routes in front of a coordinator.

    Args:
        config: of the master.
        coordinator: handles the requests.
        view: returns what the dashboard shows.
        data_port: port number of the queue.
    """

    def __init__(
        self, config: MasterConfig, coordinator: Coordinator, view: Callable[[], dict[str, Any]], data_port: int
    ) -> None:
        self._config, self._coordinator, self._view, self._data_port = config, coordinator, view, data_port
        self._tuples: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[web.RouteDef]:
        """Return all routes."""
        return [
            web.get("/status", self.get_status),
            web.get("/streamRequest", self.get_endpoint),
            web.post("/streamRequest", self.post_poll),
            web.get("/messagesQuery", self.get_query),
            web.post("/containerRequest", self.post_container_request),
            web.get("/containerRequest", self.get_container_request),
        ]

    async def get_status(self, request: web.Request) -> web.Response:
        """Answer with name, role, address and load averages of the master."""
        query = raw_query(request)
        if (refusal := wrong_token(query)) is not None:
            return refusal
        node = {"node_name": self._config.name, "node_role": 1, "node_addr": self._config.host}
        return text(write_literal({**node, **load_averages()}))

    async def get_endpoint(self, request: web.Request) -> web.Response:
        """Answer with the address for one message: a PE, or the queue; 406 when that is full."""
        query = raw_query(request)
        required = {"token": NO_TOKEN, "c_name": "Container name is required.", "c_os": "Container os is required.",
                    "source": "Data digest is required.", "digest": "Data digest is required."}  # fmt: skip
        for name, refusal in required.items():
            if name not in query:
                return text(refusal, 401)
        if "priority" in query and not query["priority"].isdigit():
            return text("Container priority is not digit.", 401)
        self._remember(query)
        address = self._coordinator.next_address(query["c_name"])
        if address is not None:
            endpoint = {"node_addr": address.host, "node_port": address.port, "node_role": 2, "m_cmd": []}
            return text(write_literal(endpoint))
        if 0 in self._coordinator.queue.free_space():
            return text("The queue is full.", 406)
        endpoint = {"node_addr": self._config.host, "node_port": self._data_port, "node_role": 4, "m_cmd": []}
        return text(write_literal(endpoint))

    async def post_poll(self, request: web.Request) -> web.StreamResponse:
        """Give an idle legacy PE a queued message, or register its address."""
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        if any(name not in query for name in ("batch_addr", "batch_port", "batch_status", "c_name")):
            return text("Invalid parameters!", 406)
        port, status, c_name = query["batch_port"], query["batch_status"], query["c_name"]
        numbers = _is_number(port) and _is_number(status) and 0 < int(port) < 65536
        if not numbers or not can_be_host(query["batch_addr"]) or not 0 < len(c_name) <= 999:
            return text("Invalid data type!", 406)
        pe_id = query.get("short_id", "") or f"{query['batch_addr']}:{port}"
        address = NodeAddress(pe_id, query["batch_addr"], int(port))
        pe = RegisteredPe(address, c_name, worker="", last_heartbeat=time.monotonic(), state="idle")
        queue, registry = self._coordinator.queue, self._coordinator.registry
        if queue.peek_message(c_name) is None:
            registry.register_idle(pe)
            return text("No item in queue")
        if int(status) != 0:
            registry.register_idle(pe)
            return text("OK")
        registry.remove_idle(pe)
        return await self._answer_with_message(request, c_name)

    async def get_query(self, request: web.Request) -> web.Response:
        """Answer a query about the queue, or everything that is known."""
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        match query.get("command"):
            case None:
                return text("No command specified.", 406)
            case "queueLength":
                return text(write_literal(self._coordinator.queue.lengths()))
            case "current_id":
                return text("None")
            case "verbose":
                return text(write_literal(self._verbose()))
            case "verbose_html":
                return web.Response(text=render_page(self._view()), content_type="text/html")
            case _:
                return text("")

    async def post_container_request(self, request: web.Request) -> web.Response:
        """Handle a request of the IRM era for a number of containers of an image."""
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        if query.get("type") != "new_container":
            return text("Invalid parameters!", 406)
        require(request, self._config.tokens, ["operator"])
        try:
            spec = read_stream_spec(await request.read())
        except RefusedError as error:
            return text(str(error), 400)
        self._coordinator.request_containers(spec)
        return text("Containers queued for creation!")

    async def get_container_request(self, request: web.Request) -> web.Response:
        """Answer whether containers of an image were requested."""
        query = raw_query(request)
        if "token" not in query:
            return text(NO_TOKEN, 401)
        known = self._coordinator.was_requested(query.get("c_name", ""))
        return text("" if query.get("type") == "poll_container" and known else "Not found", 200 if known else 404)

    async def _answer_with_message(self, request: web.Request, c_name: str) -> web.StreamResponse:
        """Answer with the oldest message, which waits again unless the whole answer was sent."""
        queue = self._coordinator.queue
        taken = queue.take_message(c_name)
        if taken is None:
            return text("No item in queue")
        frame, message = taken
        answer, sent = web.Response(status=203, body=message, headers={"Content-Type": "Bytes"}), False
        try:
            await answer.prepare(request)
            await answer.write_eof()
            sent = True
        finally:  # also when the PE has disconnected, and when the master is stopped
            (queue.done if sent else queue.put_back)(c_name, frame.key)
        return answer

    def _remember(self, query: dict[str, str]) -> None:
        now = int(time.time())
        values = {name: query.get(name, "0") for name in ("digest", "c_name", "c_os", "source", "priority")}
        self._tuples[f"{query['digest'][:12]}:{now}"] = {**values, "status": 0, "last_upd": now}
        while len(self._tuples) > _MAX_TUPLES:
            del self._tuples[next(iter(self._tuples))]

    def _verbose(self) -> dict[str, Any]:
        registry, queue = self._coordinator.registry, self._coordinator.queue
        idle = {name: [_describe_idle(name, pe) for pe in pes.values()] for name, pes in registry.idle.items()}
        workers = {worker.node_addr: worker.report for worker in registry.workers.values()}
        return {"WORKERS": workers, "CONTAINERS": idle, "TUPLES": self._tuples, "MSG": queue.lengths()}


def _is_number(text: str) -> bool:
    """Return whether a text is a number of at most five digits: a port, or a status."""
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def _describe_idle(c_name: str, pe: RegisteredPe) -> dict[str, Any]:
    return {
        "batch_addr": pe.address.host,
        "batch_port": pe.address.port,
        "batch_status": 0,
        "c_name": c_name,
        "last_upd": int(time.time() - time.monotonic() + pe.last_heartbeat),
    }
