"""Messages that come one by one are processed several at a time, and none is left."""

from collections.abc import Sequence

import pytest

from bench.model.cell import Cell
from bench.workload.delivery_counts import ProcessingReport
from frameworks.flink.conf import gathered_messages
from frameworks.flink.gathered_work import GatheredWork


class Processed:
    """A function that notes what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []

    def __call__(self, messages: Sequence[bytes]) -> list[ProcessingReport]:
        self.calls.append(list(messages))
        return [ProcessingReport(0.0, 1, [])]


def test_as_many_messages_as_asked_for_are_processed_at_once_in_their_order() -> None:
    processed = Processed()
    work = GatheredWork(processed, 3)
    reports = [len(work.add(b"%d" % number)) for number in range(7)]
    assert processed.calls == [[b"0", b"1", b"2"], [b"3", b"4", b"5"]]
    assert reports == [0, 0, 1, 0, 0, 1, 0]
    assert len(work.flush()) == 1
    assert processed.calls[2:] == [[b"6"]]
    assert work.flush() == []


def test_a_message_that_no_other_one_follows_waits_from_one_call_to_the_next() -> None:
    processed = Processed()
    work = GatheredWork(processed, 3)
    work.add(b"0")
    assert work.flush_waiting() == []
    assert len(work.flush_waiting()) == 1
    assert processed.calls == [[b"0"]]


def test_messages_whose_group_is_processed_between_two_calls_do_not_count_as_waiting() -> None:
    processed = Processed()
    work = GatheredWork(processed, 2)
    work.add(b"0")
    work.flush_waiting()
    work.add(b"1")
    work.add(b"2")
    assert work.flush_waiting() == []
    assert processed.calls == [[b"0", b"1"]]


@pytest.mark.parametrize(
    ("size", "cost", "count"), [(100, 0.0, 256), (100, 1e-4, 50), (100, 0.01, 1), (10**6, 0.0, 1), (10**4, 0.0, 104)]
)
def test_a_group_is_limited_by_its_bytes_and_its_cpu_cost(size: int, cost: float, count: int) -> None:
    assert gathered_messages(Cell("flink", "kafka", size, cost)) == count
