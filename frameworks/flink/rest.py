"""Flink's REST interface: whether a cluster is there, the state of a job, its parallelism, and its end."""

import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import TypeVar
from urllib.error import HTTPError

import msgspec
from msgspec import Struct

from bench.errors import ServiceError

_TIMEOUT_S = 5.0
_MAX_ANSWER = 200
"""Characters of an answer that are shown where it is none of Flink's."""
RUNNING = "RUNNING"
ENDED = frozenset({"FAILED", "CANCELED", "FINISHED", "SUSPENDED"})
"""States of a job that does nothing any more."""
_LIVING = frozenset({"INITIALIZING", "CREATED", RUNNING, "RESTARTING"})
"""States of a job that nothing has gone wrong with: one that fails is never started again, one whose parallelism
changes is."""


class Overview(Struct, frozen=True, rename="kebab"):
    """The cluster."""

    slots_total: int
    slots_available: int


class Vertex(Struct, frozen=True):
    """A vertex of a job: operators that run as one task."""

    id: str
    name: str
    status: str


class SubtaskMetrics(Struct, frozen=True, rename="kebab"):
    """The metrics of a subtask since it started, as the cluster last heard of them."""

    read_records: int
    accumulated_busy_time: float | str
    """milliseconds; "NaN" while it is not known"""
    accumulated_idle_time: float | str = "NaN"
    """likewise"""
    accumulated_backpressured_time: float | str = "NaN"
    """likewise"""


class Subtask(Struct, frozen=True, rename="kebab"):
    """One of the parallel tasks of a vertex."""

    subtask: int
    """its number in the vertex"""
    attempt: int
    """another one with each start of a subtask of this number"""
    status: str
    metrics: SubtaskMetrics


class _VertexDetails(Struct, frozen=True):
    subtasks: list[Subtask]


class _Bounds(Struct, frozen=True, rename="camel"):
    lower_bound: int
    upper_bound: int


class _Requirement(Struct, frozen=True):
    parallelism: _Bounds


class _Refusal(Struct, frozen=True):
    errors: list[str] = []


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

    def subtasks(self, job: str, vertex: str) -> list[Subtask]:
        """Return the subtasks of a job's vertex."""
        return self._get(f"/jobs/{job}/vertices/{vertex}", _VertexDetails).subtasks

    def require(self, job: str, parallelism: Mapping[str, int]) -> None:
        """Have the vertices of a job run with so many subtasks each, or fewer where slots are missing."""
        wanted = {vertex: _Requirement(_Bounds(1, most)) for vertex, most in parallelism.items()}
        self._ask("PUT", f"/jobs/{job}/resource-requirements", msgspec.json.encode(wanted))

    def cancel(self, job: str) -> None:
        """Have a job end, wherever it is."""
        self._ask("PATCH", f"/jobs/{job}?mode=cancel")

    def _get(self, path: str, kind: type[View]) -> View:
        try:
            return msgspec.json.decode(self._ask("GET", path), type=kind)
        except msgspec.DecodeError as problem:
            raise ServiceError(f"Flink at {self.address} gives another answer to {path} than expected") from problem

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.address}{path}", body, headers, method=method)
        try:
            return self._answer(request, path)
        except (OSError, ValueError, HTTPException) as problem:  # of a connection, and of HTTP
            raise ServiceError(f"Flink at {self.address} does not answer {path}: {_line(str(problem))}") from problem

    def _answer(self, request: urllib.request.Request, path: str) -> bytes:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                found: bytes = answer.read()
        except HTTPError as problem:
            with problem:
                why = refusal(problem.read())
            raise ServiceError(f"Flink at {self.address} refuses {path}: {why}") from problem
        return found


def refusal(answer: bytes) -> str:
    """Return the line of an answer with errors that says why Flink refuses; the answer itself where it has none."""
    try:
        errors = msgspec.json.decode(answer, type=_Refusal).errors
    except msgspec.DecodeError:
        errors = []
    return deepest_cause("\n".join(errors)) or _line(answer.decode(errors="replace"))


def deepest_cause(stacktrace: str) -> str:
    """Return the line of a Java stack trace that says what happened at first."""
    lines = [line.strip() for line in stacktrace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else next(iter(lines), "")


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_ANSWER]
