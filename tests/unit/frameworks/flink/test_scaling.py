"""Counters of workers follow from the metrics of Flink's subtasks, which begin anew with each change of parallelism."""

from collections.abc import Mapping

import pytest

from bench.elasticity.live_samples import Offered, WorkerMeter
from bench.elasticity.samples import true_rates
from frameworks.flink.rest import Subtask, SubtaskMetrics, Vertex, refusal
from frameworks.flink.scaling import SubtaskMeter, function_vertex, plan_parallelism

SOURCE, CALC, SINK = (Vertex(name, name, "RUNNING") for name in ("Source: messages", "PythonCalc[2]", "results[3]"))
CHAIN = Vertex("all", "Source: messages[1] -> PythonCalc[2] -> results[3]: Writer", "RUNNING")


def subtask(
    number: int, records: int, busy_ms: float | str, *, attempt: int = 0, status: str = "RUNNING"
) -> Subtask:  # fmt: skip
    """Return a subtask with its metrics."""
    return Subtask(number, attempt, status, SubtaskMetrics(records, busy_ms))


def seen(meter: SubtaskMeter) -> Mapping[str, tuple[int, float]]:
    """Return messages and useful seconds by worker."""
    return {one.worker: (one.processed, one.useful_s) for one in meter.workers}


def test_counters_begin_when_metrics_are_known() -> None:
    """A subtask that has told none, or NaN, is no worker yet; what it did before is not counted in a short interval."""
    meter = SubtaskMeter()
    for at, (records, busy_ms) in enumerate([(0, "NaN"), (0, 0.0), (90, 5000.0)]):
        meter.add([subtask(0, records, busy_ms)], at)
        assert seen(meter) == {}
    meter.add([subtask(0, 100, 5500.0)], 3)
    assert seen(meter) == {"0.0": (10, 0.5)}


@pytest.mark.parametrize("status", ["DEPLOYING", "INITIALIZING", "CANCELING", "FINISHED"])
def test_only_a_running_subtask_is_a_worker(status: str) -> None:
    """It takes no message before, and none afterwards."""
    meter = SubtaskMeter()
    for at in range(3):
        meter.add([subtask(0, at, 1000.0 + at), subtask(1, at, 1000.0 + at, status=status)], at)
    assert list(seen(meter)) == ["0.0"]


def test_a_change_of_parallelism_gives_other_workers() -> None:
    """A subtask of the same number is another attempt, whose metrics restart at 0."""
    meter = SubtaskMeter()
    for records in (100, 120):
        meter.add([subtask(0, records, 50.0 * records)], records)
    assert seen(meter) == {"0.0": (20, 1.0)}
    for records in (3, 5):
        meter.add([subtask(number, records, 50.0 * records, attempt=1 - number) for number in (0, 1)], 200 + records)
    assert seen(meter) == {"0.1": (2, pytest.approx(0.1)), "1.0": (2, pytest.approx(0.1))}


def test_time_without_messages_is_not_useful() -> None:
    """It counts as busy until the next message comes; counters are as of the last message, and never go back."""
    meter, counted = SubtaskMeter(), []
    for at, (records, busy_ms) in enumerate([(7, 1000.0), (7, 2000.0), (8, 1050.0), (8, 2050.0), (9, 1020.0)]):
        meter.add([subtask(0, records, busy_ms)], at)
        counted += [(one.at, one.processed, round(one.useful_s, 6)) for one in meter.workers]
    assert counted == [(0, 0, 0.0), (2, 1, 0.05), (2, 1, 0.05), (4, 2, 0.05)]


def test_a_sample_after_a_restart_has_the_true_rate() -> None:
    """Seconds without metrics do not make a worker look faster: 20 messages/s of 50 ms each, whatever came before."""
    meter, workers = SubtaskMeter(), WorkerMeter([])
    for at in range(12):
        known = at >= 6
        meter.add([subtask(0, 20 * at if known else 0, 1000.0 * at if known else "NaN")], float(at))
    sample = workers.sample(meter.workers, Offered(30.0, 50), at=12.0, seconds=5.0)
    found = true_rates(sample.operators["system"])
    assert found is not None
    assert found.processing == pytest.approx(20.0)


def test_all_vertices_get_the_same_parallelism() -> None:
    """A task slot holds one subtask of each."""
    assert plan_parallelism([SOURCE, CALC, SINK], 3) == {SOURCE.id: 3, CALC.id: 3, SINK.id: 3}


def test_the_vertex_that_calls_our_function_is_the_worker() -> None:
    """It is the only one, or one of several where the scenario's options divide the chain."""
    assert function_vertex([CHAIN]) == CHAIN
    assert function_vertex([SOURCE, CALC, SINK]) == CALC


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b'{"errors":["Internal error.","<Exception\\nat a\\nCaused by: b.C: it is fixed\\n\\tat d"]}', "it is fixed"),
        (b'{"errors":["not found: 7"]}', "not found: 7"),
        (b"<html>", "<html>"),
    ],
    ids=["cause", "line", "another server"],
)  # fmt: skip
def test_a_refusal_is_told_in_a_line(answer: bytes, said: str) -> None:
    """It is the deepest cause that Flink names."""
    assert said in refusal(answer)
    assert "\n" not in refusal(answer)
