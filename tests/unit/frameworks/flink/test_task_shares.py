"""What the subtasks of Flink did between two looks follows from the milliseconds that it counts."""

from bench.model.trace import TraceSample
from frameworks.flink.rest import Subtask, SubtaskMetrics, Vertex
from frameworks.flink.task_shares import TaskShares

VERTEX = Vertex("v", "PythonCalc", "RUNNING")


def subtask(busy: float | str, idle: float | str, pressed: float | str, *, attempt: int = 0) -> Subtask:
    """Return a running subtask with its counters in milliseconds."""
    return Subtask(0, attempt, "RUNNING", SubtaskMetrics(0, busy, idle, pressed))


def look(shares: TaskShares, at: float, *subtasks: Subtask) -> list[TraceSample]:
    """Look once, and return the new samples."""
    shares.look([VERTEX], lambda _: subtasks, at)
    return shares.take()


def test_the_shares_are_those_of_the_time_between_two_looks() -> None:
    """Of 500 ms it was busy for 300, idle for 50, and back-pressured for 150."""
    shares = TaskShares()
    assert look(shares, 1.0, subtask(1000, 100, 0)) == []
    found = look(shares, 1.5, subtask(1300, 150, 150))
    assert {one.metric: one.value for one in found} == {"busy": 0.6, "idle": 0.1, "back-pressured": 0.3}
    assert {(one.at, one.entity) for one in found} == {(1_500_000_000, "PythonCalc 0")}


def test_counters_that_are_not_known_or_not_new_say_nothing() -> None:
    """Nor do those of another attempt, which begin again."""
    shares = TaskShares()
    counters = [subtask("NaN", "NaN", "NaN"), subtask(9, 9, 9), subtask(9, 9, 9), subtask(1, 0, 0, attempt=1)]
    assert [look(shares, float(at), one) for at, one in enumerate(counters)] == [[]] * 4
