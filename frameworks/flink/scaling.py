"""The parallelism of a running job, which Flink's adaptive scheduler changes.

It ends all tasks when a checkpoint is complete, and starts others, which go on from there: what was processed since
then is processed again. A worker is a subtask of the vertex that calls our function.
"""

import math
import time
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bench.elasticity.live_samples import WorkerCounters
from bench.errors import PluginError, ServiceError
from frameworks.flink.rest import RUNNING, FlinkRest, Subtask, Vertex

_FUNCTION_NAMES = ("PythonCalc", "work")
"""Of the operators that call our function, in the Table and in the DataStream API: in the name of their vertex."""


class JobScaling:
    """The parallelism of one job, and what its subtasks count.

    Args:
        rest: of the cluster.
        job: its id.
        max_workers: the highest parallelism: task slots, or partitions where there are fewer.
    """

    def __init__(self, rest: FlinkRest, job: str, max_workers: int) -> None:
        self.job, self.max_workers = job, max_workers
        self._rest, self._meter = rest, SubtaskMeter()
        self._vertices: list[Vertex] = []

    @property
    def has_begun(self) -> bool:
        """Return whether the parallelism was ever asked to change, so that tasks may end without a failure."""
        return bool(self._vertices)

    def rescale(self, workers: int) -> None:
        """Have the job run with so many workers; PluginError where Flink refuses, or does not answer."""
        try:
            vertices = self._vertices or self._rest.job(self.job).vertices
            self._rest.require(self.job, plan_parallelism(vertices, workers))
        except ServiceError as problem:
            why = f"{problem}; the cluster needs `jobmanager.scheduler: adaptive`"
            raise PluginError("flink", "rescale", why) from problem
        self._vertices = vertices

    def look(self) -> None:
        """Read the metrics once the parallelism was asked to change; ServiceError where Flink does not answer."""
        if self._vertices:
            vertex = function_vertex(self._vertices)
            self._meter.add(self._rest.subtasks(self.job, vertex.id), time.monotonic())

    def counters(self) -> Sequence[WorkerCounters]:
        """Return what each worker has counted, as of the last look."""
        return self._meter.workers


def plan_parallelism(vertices: Sequence[Vertex], workers: int) -> Mapping[str, int]:
    """Return the subtasks of each vertex by its id: all have as many, so that a task slot holds one of each."""
    return {vertex.id: workers for vertex in vertices}


def function_vertex(vertices: Sequence[Vertex]) -> Vertex:
    """Return the vertex that calls our function: the only one, unless the scenario's options divide the chain."""
    return next((one for one in vertices if any(name in one.name for name in _FUNCTION_NAMES)), vertices[-1])


class SubtaskMeter:
    """Makes the counters of workers from the metrics of subtasks.

    The metrics of a subtask that starts are 0 or NaN for seconds, and then have all that it did meanwhile. They
    therefore count from when they are known first, and a subtask is a worker from the next look on. Time without
    messages counts as busy until the next message comes, so that a look is used only where one has come.
    """

    def __init__(self) -> None:
        self.workers: Sequence[WorkerCounters] = ()
        """of the last look"""
        self._first: Mapping[str, WorkerCounters] = {}
        self._last: Mapping[str, WorkerCounters] = {}

    def add(self, subtasks: Sequence[Subtask], at: float) -> None:
        """Take in the metrics of a vertex's subtasks, as of CLOCK_MONOTONIC seconds."""
        known = {one.worker: one for one in (_read(subtask, at) for subtask in subtasks) if one is not None}
        now = {name: self._keep_or_take(one) for name, one in known.items()}
        self.workers = tuple(_since(self._first[name], one) for name, one in now.items() if name in self._first)
        self._first = {name: self._first.get(name, one) for name, one in now.items()}
        self._last = now

    def _keep_or_take(self, now: WorkerCounters) -> WorkerCounters:
        """Return the earlier counters if no message has come since then; busy time never goes back."""
        last = self._last.get(now.worker)
        if last is None:
            return now
        if last.processed == now.processed:
            return last
        return replace(now, useful_s=max(last.useful_s, now.useful_s))


def _since(first: WorkerCounters, now: WorkerCounters) -> WorkerCounters:
    """Return what a worker did since its metrics were known first."""
    return replace(now, processed=now.processed - first.processed, useful_s=now.useful_s - first.useful_s)


def _read(subtask: Subtask, at: float) -> WorkerCounters | None:
    """Return the metrics of a subtask since it started; None while it does not run, or they are not known."""
    busy_ms = float(subtask.metrics.accumulated_busy_time)
    if subtask.status != RUNNING or math.isnan(busy_ms) or busy_ms <= 0:
        return None
    name = f"{subtask.subtask}.{subtask.attempt}"
    return WorkerCounters(name, at, subtask.metrics.read_records, busy_ms / 1000)
