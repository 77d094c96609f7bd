"""Targets that listen: the ports of a PE and of a master, in threads of this process.

An input is a whole connection. The server must close it, answer the next one, and log one line of it at most.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.services.ports import free_ports
from frameworks.harmonicio.engine.config import MasterConfig, Tokens, WorkerConfig
from frameworks.harmonicio.engine.errors import HarmonicError
from frameworks.harmonicio.engine.master.service import run_master
from frameworks.harmonicio.engine.pe.engine import Engine, EngineOptions
from frameworks.harmonicio.engine.pe.function import UserFunction
from frameworks.harmonicio.engine.worker.service import run_worker
from tests.campaign.fuzz_readers import example_frames, with_right_checksums

ANSWER_TIMEOUT_S = 10.0
READY_TIMEOUT_S = 30.0
UNLIMITED = 10**9
FUNCTION = "tests.campaign.fuzz_servers:ignore"
_BODIES = (
    b'{"id": "a", "c_name": "s", "host": "127.0.0.1", "port": 9000, "state": "running", "stats": {"processed": 1}}',
    b'{"c_name": "s", "num": 0, "image": "python:m:f"}', b"{'node_addr': '127.0.0.1', 'node_port': 8081, 'docker': []}",
    b'{"c_name": "s", "num": 1}', b"",
)  # fmt: skip
_PATHS = (
    "/v1/info", "/v1/status", "/v1/beat", "/v1/streams", "/v1/streams?c_name=s&purge=1", "/v1/pes?id=a",
    "/status?token=None",
    "/status?token=None&finished=a&c_name=s", "/health", "/ready", "/metrics", "/v1/samples", "/v1/trace", "/",
    "/streamRequest?token=None&c_name=s&c_os=u&source=s&digest=d&priority=1",
    "/streamRequest?token=None&batch_addr=127.0.0.1&batch_port=9000&batch_status=0&c_name=s",
    "/messagesQuery?token=None&command=verbose", "/messagesQuery?token=None&command=verbose_html",
    "/containerRequest?token=None&type=new_container", "/docker?token=None&command=create", "/docker?token=None",
    "/docker?token=None&command=finished&c_name=s&short_id=a",
)  # fmt: skip


def ignore(_: object) -> None:
    """Do nothing: the function of the PE."""


class _Records(logging.Handler):
    """Counts the lines of a log, and keeps the last and the first that has a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines, self.last, self.traceback = 0, "", ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.endswith(".reports"):
            return  # a worker says that its master is not there
        self.lines, self.last = self.lines + 1, record.getMessage()
        if record.exc_info:
            self.traceback = self.traceback or f"{record.getMessage()}: {record.exc_info[1]!r}"


class ServerTarget:
    """A server under test.

    Args:
        port: On loopback.
        seeds: Valid connections.
        repair: Makes an input valid beyond its checksums.
        alive: Whether the server runs.
    """

    expected = (HarmonicError,)

    def __init__(
        self, port: int, seeds: list[bytes], repair: Callable[[bytes], bytes], alive: Callable[[], bool]
    ) -> None:
        self.seeds, self.repair, self._port, self._alive = seeds, repair, port, alive
        self._records, self._connections = _Records(), 0

    def __enter__(self) -> "ServerTarget":
        logging.getLogger().addHandler(self._records)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._records)

    def read(self, data: bytes) -> None:
        self._records.traceback = ""
        self._connections += 1
        with socket.create_connection(("127.0.0.1", self._port), timeout=ANSWER_TIMEOUT_S) as sock:
            status = _exchange(sock, data)
        assert self._alive(), "the server has ended"
        assert not self._records.traceback, f"a traceback: {self._records.traceback}"
        lines = self._records.lines  # the last of them may be of the connection before
        assert lines <= self._connections, f"{lines} lines of {self._connections} connections: {self._records.last}"
        assert not status.startswith(b"HTTP/1.1 500"), "it was answered 500"


def _exchange(sock: socket.socket, data: bytes) -> bytes:
    """Send a whole connection; return the beginning of the answer once the server has closed it."""
    answer = b""
    try:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        while part := sock.recv(2**16):
            answer = answer or part[:100]
    except TimeoutError:
        raise AssertionError("the connection was not closed") from None
    except OSError:
        return answer  # it was closed at once, as it may be
    return answer


@contextmanager
def _pe(_: Path) -> Iterator[ServerTarget]:
    listener = socket.create_server(("127.0.0.1", 0))
    options = EngineOptions(c_name="s", token="token", legacy_protocol=True, max_message_bytes=2**20)
    engine = Engine(listener, UserFunction(FUNCTION, {}), options)
    thread = threading.Thread(target=engine.run, name="pe", daemon=True)
    thread.start()
    seeds = [*example_frames(), b"a message of the legacy protocol"]
    with ServerTarget(listener.getsockname()[1], seeds, with_right_checksums, thread.is_alive) as target:
        yield target
        engine.stop()
        thread.join(READY_TIMEOUT_S)


class _Loop:
    """An event loop in a thread, in which one service runs."""

    def __init__(self, service: Callable[[], AbstractContextManager[object]] | Any) -> None:
        self._service, self._ready = service, threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="service", daemon=True)

    def __enter__(self) -> "_Loop":
        self._thread.start()
        assert self._ready.wait(READY_TIMEOUT_S), "the service did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(READY_TIMEOUT_S)

    def alive(self) -> bool:
        """Return whether it runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with self._service():
            self._ready.set()
            await self._stopped.wait()


@contextmanager
def _master(*, data: bool, folder: Path) -> Iterator[ServerTarget]:
    port, data_port = free_ports(2)
    config = MasterConfig(
        port=port, data_port=data_port, state=str(folder), sync=False, requests_per_second=UNLIMITED,
        tokens=Tokens() if data else Tokens(operator="o"), compat="on", queue_messages=1000, message_bytes=2**20,
    )  # fmt: skip
    with ExitStack() as stack:
        service = stack.enter_context(_Loop(lambda: run_master(config)))
        seeds = [*example_frames(), b"001smessage"] if data else _requests()
        chosen = data_port if data else port
        repair = with_right_checksums if data else with_right_length
        yield stack.enter_context(ServerTarget(chosen, seeds, repair, service.alive))


@contextmanager
def _worker(_: Path) -> Iterator[ServerTarget]:
    port, master_port = free_ports(2)
    config = WorkerConfig(port=port, master_port=master_port, compat="on", requests_per_second=UNLIMITED)
    with ExitStack() as stack:
        service = stack.enter_context(_Loop(lambda: run_worker(config)))
        yield stack.enter_context(ServerTarget(port, _requests(), with_right_length, service.alive))


def _requests() -> list[bytes]:
    """Return valid requests of every route."""
    verbs = ("GET", "POST", "PUT", "DELETE")
    return [
        (
            f"{verb} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer o\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        + body
        for place, path in enumerate(_PATHS)
        for verb in verbs
        for body in [_BODIES[(place + verbs.index(verb)) % len(_BODIES)]]
    ]


def with_right_length(data: bytes) -> bytes:
    """Return a request whose Content-Length is that of its body."""
    head, separator, body = data.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body)]) + separator + body


TARGETS: dict[str, Callable[[Path], AbstractContextManager[object]]] = {
    "pe-port": _pe,
    "data-port": lambda folder: _master(data=True, folder=folder),
    "master-port": lambda folder: _master(data=False, folder=folder),
    "worker-port": _worker,
}
