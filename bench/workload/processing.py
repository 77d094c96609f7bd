"""The processing that every framework applies to every message: verify it, burn its CPU cost, count it."""

import dataclasses
import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from bench.analysis.histogram import sparse_of
from bench.model import message_codec, report_record
from bench.model.message_filler import Filler, make_filler
from bench.model.message_header import Bytes, ClockReference, Headers
from bench.model.message_keys import KeySequence
from bench.model.message_sizes import SizeSequence
from bench.model.trace import TraceEvents
from bench.system import clock, procfs
from bench.workload.delivery_counts import ProcessingReport, sum_sequence
from bench.workload.span_recorder import SLOT_S, NoRecorder, SpanRecorder

NO_RUN = -1
"""The run of messages whose header cannot be read."""
MAX_CARRIED_S = 0.001
"""CPU time that a thread may have spent ahead; what a call takes longer, say in a pause of its process, is its own."""
Times = NDArray[np.float64]


class _ThreadState:
    """State that a thread keeps from one call to the next."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        """CPU time that it has burnt beyond what was asked of it"""
        self.recorder: SpanRecorder | None = None
        """of a thread whose work is traced"""


_threads: defaultdict[int, _ThreadState] = defaultdict(_ThreadState)
"""By the thread's number in the kernel: what `threading.local` keeps is gone with the next call of a thread that Python
did not start, such as Bytewax's."""


def _this_thread() -> _ThreadState:
    return _threads[threading.get_native_id()]


class MessageProcessor(Struct, frozen=True):
    """The expected form of a cell's messages, and the function with which every framework processes them."""

    message_bytes: int
    entropy: float
    clock: ClockReference = ClockReference()
    """of the times in the messages; without a known error of its own clock, a machine reports only processing times"""
    sizes: SizeSequence | None = None
    """the size of each message, if sizes differ; `message_bytes` is then their mean"""
    keys: KeySequence | None = None
    """the key of each message, if messages have keys; order is then checked within each key"""
    results_together: bool = False
    """whether the results of the messages given to `process` exist when all of them are done, not one by one; their
    latencies from due and sent then end there"""
    traced: bool = False
    """whether reports carry spans of what the process did"""
    duty: float = 1.0
    """share of the CPU cost that is burnt; the thread sleeps until the rest of it is over, too"""

    def record_spans(self, worker: str, operator: str = "work", slot_s: float = SLOT_S) -> SpanRecorder | NoRecorder:
        """Return the recorder of this thread from now on; it records nothing if the work is not traced.

        `process` adds its own laps to it, and takes its spans. The time between two batches counts as waiting for the
        source, but for the CPU time in it, unless the framework adds laps of its own. A thread without a recorder gets
        one with its first batch.

        Args:
            worker: name of the thread, unlike that of any other one on its host that does this work.
            operator: the part of the framework's program that it executes.
            slot_s: seconds within which laps are put together; 0 for a span for each lap.
        """
        return self._start_recorder(worker, operator, slot_s) if self.traced else NoRecorder()

    def process(self, messages: Sequence[bytes]) -> list[ProcessingReport]:
        """Verify, burn and count a batch of messages that are in their source's order.

        Args:
            messages: Whole messages; those of another size than expected count as corrupted.

        Returns:
            One report for each run in the batch; the last one has the corrupted messages.
        """
        began = time.monotonic()
        if self.sizes is not None:
            return self._process(message_codec.read_mixed(messages, self._filler(), self.sizes.lookup), began)
        return self._process(message_codec.read(messages, self.message_bytes, self._filler()), began)

    def process_matrix(self, matrix: Bytes) -> list[ProcessingReport]:
        """Process a batch of messages in one buffer, without a copy.

        Args:
            matrix: Bytes of shape (messages, message size).

        Returns:
            The reports that `process` returns.
        """
        if self.sizes is not None:  # messages of mixed sizes that have the same size by chance
            return self.process([row.tobytes() for row in matrix])
        began = time.monotonic()
        return self._process(message_codec.read_matrix(matrix, self._filler()), began)

    def count_records(self, records: Bytes) -> list[ProcessingReport]:
        """Count messages by what a program under test reports of them (bench.model.report_record).

        Their latencies end now. How long the program took for each is not known, and their order is not looked at.

        Args:
            records: Bytes of shape (messages, 64) or (messages, 80).

        Returns:
            The reports that `process` returns.
        """
        now, filler = time.monotonic(), self._filler() if self.sizes is None else None
        reported = report_record.read_records(records, filler)
        reports = self._report(reported.headers, np.full(len(reported.headers), now), now)
        used = _share_out(reported.cpu_used_s, reports)
        return [
            replace(
                report,
                out_of_order=0,
                processing=[],
                cpu_used_s=cpu_used_s,
                unverified=0 if reported.verified else report.count,
            )
            for report, cpu_used_s in zip(reports, used, strict=True)
        ]

    def _filler(self) -> Filler:
        largest = self.message_bytes if self.sizes is None else self.sizes.sizes.largest
        return make_filler(largest, self.entropy)

    def _process(self, headers: Headers, began: float) -> list[ProcessingReport]:
        recorder = self._recorder(began) if self.traced else None
        cost = float(headers.cost.sum())
        started = time.monotonic()
        used = burn(self.duty * cost) if cost > 0 else 0.0
        if self.duty < 1:
            time.sleep(max(0.0, started + cost - time.monotonic()))
        ended = time.monotonic()
        if recorder is not None:
            recorder.lap("deserialize", len(headers), at=started)
            recorder.lap("processing", len(headers) if used else 0, at=ended)
        done = started + (ended - started) * np.arange(1, len(headers) + 1) / max(1, len(headers))
        reports = self._report(headers, done, began)
        shares = _share_out(used, reports)
        reports = [replace(report, cpu_used_s=share) for report, share in zip(reports, shares, strict=True)]
        if recorder is not None:
            recorder.lap("reporting")
            reports[-1] = replace(reports[-1], trace=recorder.take())
            recorder.begin_wait()
        return reports

    def _report(self, headers: Headers, done: Times, began: float) -> list[ProcessingReport]:
        """Return the reports of messages that were done at these times; the last one has the corrupted messages."""
        local, max_error = self._to_local_clock(headers)
        reports = []
        for run, part, part_done in _split_by_run(local, done):
            report = _create_report(self, run, part, part_done, began)
            report = replace(report, cpu_requested_s=self.duty * float(part.cost.sum()))
            reports.append(_limit_latencies(report, part.sent, part_done, max_error))
        if headers.corrupted:
            reports[-1] = replace(reports[-1], corrupted=headers.corrupted)
        return reports

    def _recorder(self, began: float) -> SpanRecorder:
        """Return the recorder of this thread, in which the wait for the batch that began at `began` has ended."""
        recorder = _this_thread().recorder
        if recorder is None:
            return self._start_recorder(f"worker {threading.get_native_id()}", "work", SLOT_S)
        recorder.end_wait(at=began)
        return recorder

    def _start_recorder(self, worker: str, operator: str, slot_s: float) -> SpanRecorder:
        elsewhere = self.clock.boot not in ("", procfs.boot_id())
        name = f"{worker} on {os.uname().nodename}" if elsewhere else worker
        recorder = SpanRecorder(name, operator, ahead_s=clock.seconds_ahead(self.clock), slot_s=slot_s)
        _this_thread().recorder = recorder
        return recorder

    def _to_local_clock(self, headers: Headers) -> tuple[Headers, float]:
        """Return the headers by this machine's clock, and their maximal error in seconds; inf if it is unknown."""
        if self.clock.boot in ("", procfs.boot_id()) and not self.clock.stamped_remotely:
            return headers, 0.0
        ahead, max_error = clock.seconds_ahead(self.clock), self.clock.max_error
        local = dataclasses.replace(headers, due=headers.due - ahead, sent=headers.sent - ahead)
        return local, math.inf if max_error is None else max_error


def report_idle(recorder: SpanRecorder | NoRecorder) -> list[ProcessingReport]:
    """Return a report of no messages, with the spans of a thread that has none to report; empty if none is due."""
    return report_events(recorder.take_idle())


def report_events(events: TraceEvents | None) -> list[ProcessingReport]:
    """Return a report of no messages with events of a trace; empty where there are none."""
    return [ProcessingReport(time.monotonic(), NO_RUN, [], trace=events)] if events is not None else []


def burn(seconds: float) -> float:
    """Spend so much CPU time of this thread; return the seconds spent.

    A call ends a few microseconds late. The thread's next calls spend that less, so that the sum of many calls is right
    to one such delay, however short they are; at most MAX_CARRIED_S is carried over.
    """
    thread = _this_thread()
    seconds -= thread.ahead_s
    if seconds <= 0:
        thread.ahead_s = -seconds
        return 0.0
    started = time.thread_time()
    end = started + seconds
    while (now := time.thread_time()) < end:
        for _ in range(20):
            pass
    thread.ahead_s = min(MAX_CARRIED_S, now - end)
    return now - started


def _share_out(used: float | None, reports: Sequence[ProcessingReport]) -> list[float | None]:
    """Return what each report has of the CPU seconds that were used: as much as its messages asked for."""
    requested = sum(report.cpu_requested_s for report in reports)
    if used is None:
        return [None] * len(reports)
    return [used * report.cpu_requested_s / requested if requested > 0 else 0.0 for report in reports]


def _split_by_run(headers: Headers, done: Times) -> Iterator[tuple[int, Headers, Times]]:
    """Yield each run with its headers and completion times; NO_RUN if there are no headers."""
    runs = sorted(set(headers.run.tolist())) or [NO_RUN]  # far cheaper than np.unique for few messages
    if len(runs) == 1:
        yield runs[0], headers, done
        return
    for run in runs:
        rows = headers.run == run
        yield run, headers.select(rows), done[rows]


def _create_report(work: MessageProcessor, run: int, headers: Headers, done: Times, began: float) -> ProcessingReport:
    """Return the report of one run's messages; the batch was received at `began`, message i was done at done[i]."""
    producers = sorted(set(headers.producer.tolist()))
    by_producer = [
        (producer, headers.seq if len(producers) == 1 else headers.seq[headers.producer == producer])
        for producer in producers
    ]
    result = done[-1:] if work.results_together else done
    from_due, _ = sparse_of(result - headers.due)
    from_sent, negative = sparse_of(result - headers.sent)
    processing, _ = sparse_of(done - began)
    return ProcessingReport(
        float(done[-1]) if len(done) else began,
        run,
        [sum_sequence(producer, seq) for producer, seq in by_producer],
        out_of_order=sum(_count_out_of_order(producer, seq, work.keys) for producer, seq in by_producer),
        from_due=from_due,
        from_sent=from_sent,
        processing=processing,
        negative=negative,
    )


def _limit_latencies(report: ProcessingReport, sent: Times, done: Times, max_error: float) -> ProcessingReport:
    """Return the report for clocks that differ by up to `max_error` seconds; without latencies if it is inf.

    A negative latency is impossible only if it exceeds the error.
    """
    if max_error == 0:
        return report
    if math.isinf(max_error):
        return replace(report, from_due=[], from_sent=[], negative=0)
    return replace(report, negative=int(np.count_nonzero(done + max_error < sent)))


def _count_out_of_order(producer: int, seq: NDArray[np.uint64], keys: KeySequence | None) -> int:
    """Count the messages of a producer that follow a later one directly; with keys, a later one of the same key."""
    if keys is None:
        return int(np.count_nonzero(seq[1:] < seq[:-1]))
    of_key = keys.lookup(np.full(len(seq), producer), seq)
    by_key = np.argsort(of_key, kind="stable")
    same, ordered = of_key[by_key], seq[by_key]
    return int(np.count_nonzero((same[1:] == same[:-1]) & (ordered[1:] < ordered[:-1])))
