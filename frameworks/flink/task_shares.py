"""Shares of time in which the subtasks of a job are busy, idle and back-pressured, as samples of a trace.

Flink counts milliseconds for each subtask. That is all that it says of its own operators: there are no spans of them,
and so no path through them. The Python workers that call our function record themselves.
"""

import math
import threading
from collections.abc import Callable, Sequence

from bench.model.trace import TraceSample
from frameworks.flink.rest import RUNNING, Subtask, Vertex

_MAX_NAME = 60
"""Characters of a vertex's name, which has all its operators."""
_NAMES = ("busy", "idle", "back-pressured")
Times = tuple[float, float, float]
"""Milliseconds since a subtask started in which it was busy, idle and back-pressured."""


class TaskShares:
    """Takes in the counters of subtasks, and gives what they did between two looks; several threads may use it."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int, int], Times] = {}
        self._samples: list[TraceSample] = []
        self._lock = threading.Lock()

    def look(self, vertices: Sequence[Vertex], read: Callable[[str], Sequence[Subtask]], at: float) -> None:
        """Read the counters of all subtasks.

        Args:
            vertices: of the job.
            read: returns the subtasks of a vertex by its id; what it raises is raised.
            at: CLOCK_MONOTONIC seconds.
        """
        for vertex in vertices:
            for subtask in read(vertex.id):
                self._add(vertex, subtask, round(at * 1e9))

    def take(self) -> list[TraceSample]:
        """Return the samples since the last call."""
        with self._lock:
            samples, self._samples = self._samples, []
        return samples

    def _add(self, vertex: Vertex, subtask: Subtask, at: int) -> None:
        """Add the shares of the time since the counters changed last; nothing while they are not known."""
        now = _times(subtask)
        if now is None:
            return
        key = vertex.id, subtask.subtask, subtask.attempt
        last = self._last.get(key)
        if last is not None:
            spent = [after - before for before, after in zip(last, now, strict=True)]
            total = sum(spent)
            if total <= 0 or min(spent) < 0:
                return  # nothing new
            entity = f"{vertex.name[:_MAX_NAME]} {subtask.subtask}"
            with self._lock:
                for name, ms in zip(_NAMES, spent, strict=True):
                    self._samples.append(TraceSample(at, entity, name, ms / total))
        self._last[key] = now


def _times(subtask: Subtask) -> Times | None:
    metrics = subtask.metrics
    busy, idle, pressed = (
        float(each)
        for each in (
            metrics.accumulated_busy_time, metrics.accumulated_idle_time, metrics.accumulated_backpressured_time,
        )
    )  # fmt: skip
    if subtask.status != RUNNING or any(map(math.isnan, (busy, idle, pressed))):
        return None
    return busy, idle, pressed
