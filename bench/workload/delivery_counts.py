"""Exact counts of the messages that arrived, to detect losses and duplicates at full rate.

A producer numbers its messages of a run 0, 1, 2 ... Reports carry the set of the numbers that arrived
(bench.workload.number_sets), from which lost and duplicated messages follow exactly. They also carry the count of the
numbers, their sum and the sum of their squares, both modulo 2^64: the check of the set, and all that is left where a
set is missing or too large. Then the counts are the fewest faults that explain the sums, and `exact` is False.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.analysis.histogram import Histogram, Sparse, shift_sparse, sparse_sum
from bench.model.trace import TraceEvents
from bench.workload.number_sets import NumberSet, RestartedNumbers, encode_numbers, join_sets
from bench.workload.span_recorder import join_events

_MODULUS = 2**64


class SequenceSums(Struct, frozen=True, array_like=True):
    """Count, sum and sum of squares (modulo 2^64) of the sequence numbers of one producer, and their set."""

    producer: int
    count: int
    total: int
    squares: int
    numbers: NumberSet = NumberSet()
    """the numbers themselves; empty where they are not known"""


class ProcessingReport(Struct, frozen=True, tag="processing_report", omit_defaults=True):
    """The messages of one run that one process has processed since its previous report; the harness adds reports up."""

    at: float
    """CLOCK_MONOTONIC seconds at which the last of them was done"""
    run: int
    sums: list[SequenceSums]
    corrupted: int = 0
    out_of_order: int = 0
    """messages that directly follow a later one of their producer (and key, if messages have keys) in a batch"""
    cpu_requested_s: float = 0.0
    cpu_used_s: float | None = 0.0
    """None where a program under test does not say"""
    from_due: Sparse = field(default_factory=list)
    """histogram of the latencies since messages were due"""
    from_sent: Sparse = field(default_factory=list)
    """histogram of the latencies since messages were sent"""
    processing: Sparse = field(default_factory=list)
    """histogram of the times since the framework passed a message's batch to `process`"""
    negative: int = 0
    """messages that were done before they were sent, by the clocks"""
    unverified: int = 0
    """messages whose bodies nobody verified"""
    began: float | None = None
    """CLOCK_MONOTONIC seconds at which the micro-batch of these messages began; None for a continuous framework. Its
    end, at which its result exists, is `at`"""
    trace: TraceEvents | None = None
    """what the process did since its previous report, whichever messages that was about; None if it is not traced"""
    restart: int = 0
    """how often the framework had begun again from an earlier position; messages after it then come once more"""

    @property
    def count(self) -> int:
        """Number of intact messages."""
        return sum(part.count for part in self.sums)


def end_latencies(report: ProcessingReport, at: float) -> ProcessingReport:
    """Return a report whose latencies from due and sent end at `at`, when the result of its messages existed.

    Args:
        report: Its latencies end at its own time, with the last of its messages.
        at: CLOCK_MONOTONIC seconds, by the report's clock.
    """
    wait = at - report.at
    return replace(
        report, at=at, from_due=shift_sparse(report.from_due, wait), from_sent=shift_sparse(report.from_sent, wait)
    )


def merge_reports(reports: Sequence[ProcessingReport]) -> list[ProcessingReport]:
    """Return one report for each run, at the time of the run's last report."""
    by_run: dict[int, list[ProcessingReport]] = {}
    for report in reports:
        by_run.setdefault(report.run, []).append(report)
    return [of_run[0] if len(of_run) == 1 else _merge_run(of_run) for of_run in by_run.values()]


def _merge_run(reports: Sequence[ProcessingReport]) -> ProcessingReport:
    """Merge the reports of one run."""
    return ProcessingReport(
        reports[-1].at,
        reports[-1].run,
        _join_sums(part for report in reports for part in report.sums),
        corrupted=sum(report.corrupted for report in reports),
        out_of_order=sum(report.out_of_order for report in reports),
        cpu_requested_s=sum(report.cpu_requested_s for report in reports),
        cpu_used_s=_sum_known(report.cpu_used_s for report in reports),
        from_due=sparse_sum(report.from_due for report in reports),
        from_sent=sparse_sum(report.from_sent for report in reports),
        processing=sparse_sum(report.processing for report in reports),
        negative=sum(report.negative for report in reports),
        unverified=sum(report.unverified for report in reports),
        began=min((report.began for report in reports if report.began is not None), default=None),
        trace=join_events(report.trace for report in reports),
    )


def _sum_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of values; None if one of them is not known."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _join_sums(parts: Iterable[SequenceSums]) -> list[SequenceSums]:
    """Return the sums of each producer; without numbers where those of a part are not known."""
    by_producer: dict[int, list[SequenceSums]] = {}
    for part in parts:
        by_producer.setdefault(part.producer, []).append(part)
    return [_add_sums(of_producer) for of_producer in by_producer.values()]


def _add_sums(parts: list[SequenceSums]) -> SequenceSums:
    if len(parts) == 1:
        return parts[0]
    known = all(_has_numbers(part) for part in parts)
    return SequenceSums(
        parts[0].producer,
        sum(part.count for part in parts),
        sum(part.total for part in parts) % _MODULUS,
        sum(part.squares for part in parts) % _MODULUS,
        join_sets(part.numbers for part in parts) if known else NumberSet(),
    )


def _has_numbers(part: SequenceSums) -> bool:
    return part.count == 0 or bool(part.numbers.runs or part.numbers.masks)


class DeliveryCounts:
    """The sum of all reports of one run."""

    def __init__(self) -> None:
        self.count = self.corrupted = self.out_of_order = self.negative = 0
        self.unverified, self.cpu_requested_s = 0, 0.0
        self.cpu_used_s: float | None = 0.0
        self.from_due, self.from_sent, self.processing = Histogram(), Histogram(), Histogram()
        self._sums: dict[int, SequenceSums] = {}
        self._numbers: dict[int, RestartedNumbers] = {}

    @property
    def exact(self) -> bool:
        """Return whether lost and duplicated messages are exact; otherwise they are the fewest that are possible."""
        return all(numbers.received.exact for numbers in self._numbers.values())

    @property
    def processed_again(self) -> int:
        """Return how many messages restarts processed once more, each as often as that happened."""
        return sum(numbers.again for numbers in self._numbers.values())

    def add(self, report: ProcessingReport) -> None:
        """Add a report of this run."""
        self.count += report.count
        self.corrupted += report.corrupted
        self.out_of_order += report.out_of_order
        self.cpu_requested_s += report.cpu_requested_s
        self.cpu_used_s = _sum_known((self.cpu_used_s, report.cpu_used_s))
        self.unverified += report.unverified
        self.from_due.add(report.from_due)
        self.from_sent.add(report.from_sent)
        self.processing.add(report.processing)
        self.negative += report.negative
        for part in report.sums:
            self._add_part(part, report.restart)

    def reconcile(self, sent: dict[int, int]) -> tuple[int, int]:
        """Compare what arrived with what was sent.

        Args:
            sent: Number of messages that each producer sent.

        Returns:
            (lost, duplicated); the fewest messages of each that explain the difference where `exact` is False. Messages
            that nobody sent count as duplicated; those that a restart processed again do not.
        """
        lost = duplicated = 0
        for producer in sent.keys() | self._sums.keys():
            arrived = self._sums.get(producer, SequenceSums(producer, 0, 0, 0))
            count = sent.get(producer, 0)
            less, more = _explain(sum_range(producer, count), arrived)
            numbers = self._numbers.get(producer)
            if numbers is not None and numbers.received.exact:
                different = numbers.received.count_below(
                    count
                )  # the sums never explain more than the set does, unless it is wrong
                less, more = max(less, count - different), max(more, arrived.count - different)
            lost, duplicated = lost + less, duplicated + more
        return lost, max(0, duplicated - self.processed_again)

    def _add_part(self, part: SequenceSums, restart: int) -> None:
        before = self._sums.get(part.producer)
        sums = replace(part, numbers=NumberSet())
        self._sums[part.producer] = sums if before is None else _add_sums([before, sums])
        numbers = self._numbers.setdefault(part.producer, RestartedNumbers())
        numbers.received.exact = numbers.received.exact and _has_numbers(part)
        if numbers.received.exact:
            numbers.add(part.numbers, restart)


def sum_sequence(producer: int, seq: NDArray[np.uint64]) -> SequenceSums:
    """Return the sums and the set of a producer's sequence numbers."""
    total, squares = int(seq.sum(dtype=np.uint64)), int((seq * seq).sum(dtype=np.uint64))
    return SequenceSums(producer, len(seq), total, squares, encode_numbers(seq))


def sum_range(producer: int, count: int) -> SequenceSums:
    """Return the sums and the set of 0, 1, ... count - 1, in closed form."""
    total, squares = count * (count - 1) // 2, (count - 1) * count * (2 * count - 1) // 6
    numbers = NumberSet([(0, 1, count)] if count else [])
    return SequenceSums(producer, count, total % _MODULUS, squares % _MODULUS, numbers)


def _explain(sent: SequenceSums, arrived: SequenceSums) -> tuple[int, int]:
    """Return the fewest (lost, duplicated) messages of one producer that are consistent with all three sums."""
    missing = sent.count - arrived.count
    total = (sent.total - arrived.total) % _MODULUS
    squares = (sent.squares - arrived.squares) % _MODULUS
    lost, duplicated = max(0, missing), max(0, -missing)
    if missing == 0 and (total or squares):
        return 1, 1
    if missing == 1 and squares != total * total % _MODULUS:
        return 2, 1
    if missing == -1 and -squares % _MODULUS != total * total % _MODULUS:
        return 1, 2
    return lost, duplicated
