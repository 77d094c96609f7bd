"""Flink's REST interface: whether a cluster is there, the state of a job, and its end."""

import urllib.request
from typing import TypeVar

import msgspec
from msgspec import Struct

from bench.errors import ServiceError

_TIMEOUT_S = 5.0
RUNNING = "RUNNING"
ENDED = frozenset({"FAILED", "CANCELED", "FINISHED", "SUSPENDED"})
"""States of a job that does nothing any more."""
_LIVING = frozenset({"INITIALIZING", "CREATED", RUNNING})
"""States of a job that nothing has gone wrong with."""


class Overview(Struct, frozen=True, rename="kebab"):
    """The cluster."""

    slots_total: int
    slots_available: int


class Vertex(Struct, frozen=True):
    """A vertex of a job: operators that run as one task."""

    status: str


class JobStatus(Struct, frozen=True):
    """A job."""

    state: str
    vertices: list[Vertex]

    @property
    def reads(self) -> bool:
        """Return whether all its tasks run."""
        return self.state == RUNNING and all(vertex.status == RUNNING for vertex in self.vertices)

    @property
    def failing(self) -> bool:
        """Return whether it has ended, or is about to end."""
        return self.state not in _LIVING


class _Exception(Struct, frozen=True):
    stacktrace: str = ""


class _History(Struct, frozen=True):
    entries: list[_Exception] = []


class _Exceptions(Struct, frozen=True, rename="camel"):
    exception_history: _History = _History()


View = TypeVar("View")


class FlinkRest:
    """A cluster at host:port. Its methods raise ServiceError where it does not answer, or refuses."""

    def __init__(self, address: str) -> None:
        self.address = address

    def overview(self) -> Overview:
        """Return what the cluster has."""
        return self._get("/overview", Overview)

    def job(self, job: str) -> JobStatus:
        """Return a job."""
        return self._get(f"/jobs/{job}", JobStatus)

    def failure(self, job: str) -> str:
        """Return why a job failed, in a line; nothing where Flink does not say."""
        entries = self._get(f"/jobs/{job}/exceptions", _Exceptions).exception_history.entries
        return deepest_cause(entries[0].stacktrace) if entries else ""

    def cancel(self, job: str) -> None:
        """Have a job end, wherever it is."""
        self._ask("PATCH", f"/jobs/{job}?mode=cancel")

    def _get(self, path: str, kind: type[View]) -> View:
        try:
            return msgspec.json.decode(self._ask("GET", path), type=kind)
        except msgspec.DecodeError as problem:
            raise ServiceError(f"Flink at {self.address} gives another answer to {path} than expected") from problem

    def _ask(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(f"http://{self.address}{path}", method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                found: bytes = answer.read()
        except (OSError, ValueError) as problem:  # of a connection, and of HTTP
            raise ServiceError(f"Flink at {self.address} does not answer {path}: {problem}") from problem
        return found


def deepest_cause(stacktrace: str) -> str:
    """Return the line of a Java stack trace that says what happened at first."""
    lines = [line.strip() for line in stacktrace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else next(iter(lines), "")
