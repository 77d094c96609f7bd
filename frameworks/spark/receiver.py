"""Spark Streaming (DStreams): socket receivers whose lines are messages, and reports of each batch of them."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.serializers import UTF8Deserializer
from pyspark.streaming import DStream, StreamingContext, StreamingListener

from bench.config.address import Address
from bench.workload.delivery_counts import ProcessingReport
from frameworks.spark.batch_clock import BatchClock
from frameworks.spark.commands import Read, first_line
from frameworks.spark.driver_trace import add_driver, start_trace
from frameworks.spark.tasks import merge_rows, on_lines

_START_TIMEOUT_S = 20.0
"""Seconds that receivers have to start."""


class Receiver:
    """One streaming context on Spark's context; it reads from its construction until `stop`."""

    def __init__(
        self, spark: SparkContext, read: Read, done: Callable[[list[ProcessingReport]], None], cores: int
    ) -> None:
        self._spark = spark
        _warm(spark, read, cores)
        self._done, self._work, self._failure = done, on_lines(read.work), ""
        self._clock = BatchClock()
        self._trace = start_trace(spark.master) if read.work.traced else None
        self._context = StreamingContext(spark, read.interval)  # type: ignore[arg-type]  # a float is right
        self._watch = _Watch(receivers=len(read.addresses))
        self._context.addStreamingListener(self._watch)
        _lines(self._context, read).foreachRDD(self._finish)
        self._context.start()
        if not self._watch.started.wait(_START_TIMEOUT_S):
            self.stop()
            raise PySparkException(f"not every receiver has started within {_START_TIMEOUT_S:g} s")

    def failure_reason(self) -> str | None:
        """Return why it cannot go on; None while it does."""
        if self._watch.error is not None:
            return f"the receiver failed: {self._watch.error}"
        try:
            self._context.awaitTerminationOrTimeout(0)  # raises what a batch has raised
        except (PySparkException, Py4JError) as error:
            return f"a batch failed: {self._failure or first_line(error)}"
        return None

    def stop(self) -> None:
        """End at once: by then everything is counted, or nobody asks for it any more."""
        self._context.stop(stopSparkContext=False, stopGraceFully=False)
        self._spark.cancelAllJobs()  # a batch that is under way

    def _finish(self, batch_time: datetime, batch: "RDD[bytes]") -> None:
        """Run a batch and report what it did; called by Spark. One without blocks runs nothing: there is no report."""
        called, called_ms = time.monotonic(), round(time.time() * 1000)
        try:
            if batch.getNumPartitions():
                rows = batch.mapPartitions(self._work).collect()
                at = time.monotonic()
                times = self._watch.times(round(batch_time.timestamp() * 1000), called_ms)
                began = self._clock.begin(*times)
                self._clock.end(at)
                reports = merge_rows(rows, began, at)
                if self._trace is not None:
                    reports = add_driver(reports, self._trace, (called, at), times, {})
                self._done(reports)
        except (PySparkException, Py4JError) as error:
            self._failure = first_line(error)
            raise


class _Watch(StreamingListener):
    """A listener for the start of all receivers, their errors, and the processing times of batches.

    Spark's listeners hear of an event a few milliseconds after it. What `times` is asked for is older: a batch has run,
    and the one before it had ended by then.
    """

    def __init__(self, receivers: int) -> None:
        super().__init__()
        self.started, self.error = threading.Event(), None
        self._missing = receivers
        self._started, self._ended, self._before_ms = (0, 0), (0, 0), -1

    def times(self, batch_ms: int, called_ms: int) -> tuple[int, int | None]:
        """Return when a batch that has just run began, and when the batch before, that this was asked of, had ended.

        Args:
            batch_ms: The batch's time, which is its name.
            called_ms: When our function was called; it stands for the begin if that has not been heard of yet.

        Returns:
            Milliseconds since 1970; None for an end that has not been heard of.
        """
        (started, started_ms), (ended, ended_ms) = self._started, self._ended
        before_ms, self._before_ms = self._before_ms, batch_ms
        return started_ms if started == batch_ms else called_ms, ended_ms if ended == before_ms else None

    def onBatchStarted(self, batchStarted: Any) -> None:  # noqa: N802, N803  Spark's name
        info = batchStarted.batchInfo()
        self._started = (info.batchTime().milliseconds(), info.processingStartTime())

    def onBatchCompleted(self, batchCompleted: Any) -> None:  # noqa: N802, N803  Spark's name
        info = batchCompleted.batchInfo()
        if info.batchTime().milliseconds() == self._before_ms:  # an empty batch after it does not stand for it
            self._ended = (self._before_ms, info.processingEndTime())

    def onReceiverStarted(self, receiverStarted: Any) -> None:  # noqa: N802, N803, ARG002  Spark's name
        self._missing -= 1
        if self._missing <= 0:
            self.started.set()

    def onReceiverError(self, receiverError: Any) -> None:  # noqa: N802, N803  Spark's name
        self.error = receiverError.receiverInfo().lastErrorMessage()


def _lines(context: StreamingContext, read: Read) -> "DStream[bytes]":
    """Return the union of a `socketTextStream` for each address, whose lines stay bytes in Python."""
    java = context._jssc  # noqa: SLF001  PySpark offers the stream as text only
    level = context.sparkContext._getJavaStorageLevel(_LEVELS[read.storage])  # noqa: SLF001
    streams = [java.socketTextStream(*Address.parse(address), level) for address in read.addresses]
    return context.union(*(DStream(stream, context, _AS_BYTES) for stream in streams))


_AS_BYTES = UTF8Deserializer(use_unicode=False)  # type: ignore[no-untyped-call]
_LEVELS = {
    "MEMORY_ONLY": StorageLevel(False, True, False, True),  # noqa: FBT003  Java's own: PySpark's stores serialized
    "MEMORY_AND_DISK_2": StorageLevel.MEMORY_AND_DISK_2,
}


def _warm(spark: SparkContext, read: Read, cores: int) -> None:
    """Start every Python worker, with what it imports, before the first message."""
    spark.parallelize([b""] * cores, cores).mapPartitions(on_lines(read.work)).collect()
