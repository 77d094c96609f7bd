"""Functions for Spark's Python workers: the work on one task's messages, reported in rows of JSON."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from bench.model.message_header import Bytes
from bench.system import clock
from bench.workload import delivery_counts
from bench.workload.delivery_counts import ProcessingReport
from bench.workload.processing import MessageProcessor
from bench.workload.span_recorder import NoRecorder, SpanRecorder

BATCH_BYTES = 8_000_000
"""At most so much of a task's messages is taken at once: more gains nothing, and costs memory in JVM and worker."""
MAX_MESSAGES = 20_000
"""Nor more messages than this, however small they are: what is touched then stays in the cache."""


def messages_at_once(message_bytes: int) -> int:
    """Return how many messages a worker takes at once."""
    return max(1, min(MAX_MESSAGES, BATCH_BYTES // message_bytes))


def on_arrow(work: MessageProcessor) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow: batches of one binary column in, one row of reports for each out."""
    work = replace(work, results_together=True)

    def report_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spans = _record_task(work)
        for batch in batches:
            spans.lap("source-read")
            if len(batch):
                row = _encode_reports(work, _process_column(work, batch.column(0)))
                yield pa.RecordBatch.from_arrays([pa.array([row])], ["reports"])

    return report_batches


def on_lines(work: MessageProcessor) -> Callable[[Iterable[bytes]], Iterator[str]]:
    """Return a function for mapPartitions: messages in, reports out."""
    work = replace(work, results_together=True)

    def report_batches(lines: Iterable[bytes]) -> Iterator[str]:
        rest, most = iter(lines), messages_at_once(work.message_bytes)
        spans = _record_task(work)
        while batch := list(islice(rest, most)):
            spans.lap("source-read")
            yield _encode_reports(work, work.process(batch))

    return report_batches


def merge_rows(rows: Iterable[str], began: float, at: float) -> list[ProcessingReport]:
    """Return the reports of all tasks of a micro-batch as one for each run; their latencies end with the batch.

    Args:
        rows: What the tasks returned.
        began: CLOCK_MONOTONIC seconds of this process at which the batch began.
        at: When its result existed.
    """
    reports = [report for row in rows for report in msgspec.json.decode(row, type=list[ProcessingReport])]
    ended = [delivery_counts.end_latencies(report, at) for report in reports]
    return [replace(report, began=began, at=at) for report in delivery_counts.merge_reports(ended)]


def _record_task(work: MessageProcessor) -> SpanRecorder | NoRecorder:
    """Return the recorder of a task: the worker is this process, which runs one task after the other."""
    partition = 0
    if work.traced:
        from pyspark import TaskContext  # here: the harness imports this module, also where there is no PySpark

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
    return work.record_spans(f"Python worker {os.getpid()}", f"task {partition}", slot_s=0.0)


def _process_column(work: MessageProcessor, column: pa.Array) -> list[ProcessingReport]:
    matrix = _matrix_of(column, work.message_bytes)
    if matrix is not None:
        return work.process_matrix(matrix)
    return work.process([message or b"" for message in column.to_pylist()])  # a null is a message of the wrong size


def _matrix_of(column: pa.Array, size: int) -> Bytes | None:
    """Return a column of binaries as (messages, size), not copied; None when one has another size."""
    _, offsets, data = column.buffers()
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    bounds = np.frombuffer(offsets, dtype=width, count=len(column) + 1, offset=column.offset * width().itemsize)
    if column.null_count or (np.diff(bounds) != size).any():
        return None
    return np.frombuffer(data, dtype=np.uint8, count=len(column) * size, offset=int(bounds[0])).reshape(
        len(column), size
    )


def _encode_reports(work: MessageProcessor, reports: list[ProcessingReport]) -> str:
    """Return reports as a row, by the clock of the harness's machine, which is the driver's too."""
    ahead = clock.seconds_ahead(work.clock)
    return msgspec.json.encode([replace(report, at=report.at + ahead) for report in reports]).decode()
