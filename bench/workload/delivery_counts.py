"""Exact accounts of what arrived: counts and sums that find a loss or a duplicate at full rate without storing a sequence.

A producer numbers its messages of a run 0, 1, 2 ... Whoever receives them keeps, for each producer, their count, the sum of the
numbers and the sum of their squares, both modulo 2^64. What was sent fixes all three.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from bench.analysis.histogram import Histogram, Sparse, sparse_sum

_MODULUS = 2**64


class SequenceSums(Struct, frozen=True, array_like=True):
    """Count, sum and sum of squares (modulo 2^64) of the sequence numbers of one producer."""

    producer: int
    count: int
    total: int
    squares: int

    def plus(self, other: "SequenceSums") -> "SequenceSums":
        total, squares = self.total + other.total, self.squares + other.squares
        return SequenceSums(self.producer, self.count + other.count, total % _MODULUS, squares % _MODULUS)


class ProcessingReport(Struct, frozen=True, tag="processed"):
    """What one process has done of one run since its previous report; the harness adds reports up.

    `at` is CLOCK_MONOTONIC seconds when the work was done; `asked` and `burnt` are CPU seconds; `out_of_order` counts messages that
    stand behind a later one of the same producer within a batch; `from_due` and `from_sent` are latency histograms.
    """

    at: float
    run: int
    sums: list[SequenceSums]
    corrupted: int = 0
    out_of_order: int = 0
    cpu_requested_s: float = 0.0
    cpu_used_s: float = 0.0
    from_due: Sparse = field(default_factory=list)
    from_sent: Sparse = field(default_factory=list)
    processing: Sparse = field(default_factory=list)
    """from the moment at which the framework's function got a message's batch until the message was done"""
    negative: int = 0
    """messages that were done before they were sent, by the clocks"""

    @property
    def count(self) -> int:
        """Intact messages."""
        return sum(part.count for part in self.sums)


def merge_reports(reports: Sequence[ProcessingReport]) -> list[ProcessingReport]:
    """As few reports as say the same: one for each run, at the time of its last."""
    by_run: dict[int, list[ProcessingReport]] = {}
    for report in reports:
        by_run.setdefault(report.run, []).append(report)
    return [of_run[0] if len(of_run) == 1 else _sum_of(of_run) for of_run in by_run.values()]


def _sum_of(reports: Sequence[ProcessingReport]) -> ProcessingReport:
    """The reports of one run as one."""
    return ProcessingReport(
        reports[-1].at,
        reports[-1].run,
        list(_added(part for report in reports for part in report.sums).values()),
        corrupted=sum(report.corrupted for report in reports),
        out_of_order=sum(report.out_of_order for report in reports),
        cpu_requested_s=sum(report.cpu_requested_s for report in reports),
        cpu_used_s=sum(report.cpu_used_s for report in reports),
        from_due=sparse_sum(report.from_due for report in reports),
        from_sent=sparse_sum(report.from_sent for report in reports),
        processing=sparse_sum(report.processing for report in reports),
        negative=sum(report.negative for report in reports),
    )


def _added(parts: Iterable[SequenceSums]) -> dict[int, SequenceSums]:
    """By producer."""
    sums: dict[int, SequenceSums] = {}
    for part in parts:
        known = sums.get(part.producer)
        sums[part.producer] = part if known is None else known.plus(part)
    return sums


class DeliveryCounts:
    """The reports of one run, added up."""

    def __init__(self) -> None:
        self.count = self.corrupted = self.out_of_order = self.negative = 0
        self.cpu_requested_s = self.cpu_used_s = 0.0
        self.from_due, self.from_sent, self.processing = Histogram(), Histogram(), Histogram()
        self._sums: dict[int, SequenceSums] = {}

    def add(self, report: ProcessingReport) -> None:
        self.count += report.count
        self.corrupted += report.corrupted
        self.out_of_order += report.out_of_order
        self.cpu_requested_s += report.cpu_requested_s
        self.cpu_used_s += report.cpu_used_s
        self.from_due.add(report.from_due)
        self.from_sent.add(report.from_sent)
        self.processing.add(report.processing)
        self.negative += report.negative
        for part in report.sums:
            known = self._sums.get(part.producer)
            self._sums[part.producer] = part if known is None else known.plus(part)

    def reconcile(self, sent: dict[int, int]) -> tuple[int, int]:
        """(lost, duplicated): the fewest of each that explain what arrived, given how many each producer sent."""
        lost = duplicated = 0
        for producer in sent.keys() | self._sums.keys():
            found = self._sums.get(producer, SequenceSums(producer, 0, 0, 0))
            less, more = _explained(sum_range(producer, sent.get(producer, 0)), found)
            lost, duplicated = lost + less, duplicated + more
        return lost, duplicated


def sum_sequence(producer: int, seq: NDArray[np.uint64]) -> SequenceSums:
    """The sums of these sequence numbers."""
    return SequenceSums(producer, len(seq), int(seq.sum(dtype=np.uint64)), int((seq * seq).sum(dtype=np.uint64)))


def sum_range(producer: int, count: int) -> SequenceSums:
    """The sums of 0, 1, ... count - 1."""
    total, squares = count * (count - 1) // 2, (count - 1) * count * (2 * count - 1) // 6
    return SequenceSums(producer, count, total % _MODULUS, squares % _MODULUS)


def _explained(sent: SequenceSums, found: SequenceSums) -> tuple[int, int]:
    """The fewest (lost, duplicated) of one producer that are consistent with all three sums."""
    missing = sent.count - found.count
    total = (sent.total - found.total) % _MODULUS
    squares = (sent.squares - found.squares) % _MODULUS
    lost, duplicated = max(0, missing), max(0, -missing)
    if missing == 0 and (total or squares):
        return 1, 1
    if missing == 1 and squares != total * total % _MODULUS:
        return 2, 1
    if missing == -1 and -squares % _MODULUS != total * total % _MODULUS:
        return 1, 2
    return lost, duplicated
