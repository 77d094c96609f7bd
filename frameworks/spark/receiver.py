"""Spark Streaming (DStreams): a socket receiver whose lines are messages, and reports of each batch of them."""

import threading
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.serializers import UTF8Deserializer
from pyspark.streaming import DStream, StreamingContext, StreamingListener

from bench.config.address import Address
from bench.workload.delivery_counts import ProcessingReport
from frameworks.spark.commands import Read, first_line
from frameworks.spark.tasks import merged, on_lines

_START_TIMEOUT_S = 20.0
"""Seconds that the receiver has to start."""


class Receiver:
    """One streaming context on Spark's context; it reads from its construction until `stop`."""

    def __init__(
        self, spark: SparkContext, read: Read, done: Callable[[list[ProcessingReport]], None], cores: int
    ) -> None:
        self._spark = spark
        _warm(spark, read, cores)
        self._done, self._work, self._failure = done, on_lines(read.work), ""
        self._context = StreamingContext(spark, read.interval)  # type: ignore[arg-type]  # a float is right
        self._watch = _Watch()
        self._context.addStreamingListener(self._watch)
        _lines(self._context, read).foreachRDD(self._finish)
        self._context.start()
        if not self._watch.started.wait(_START_TIMEOUT_S):
            self.stop()
            raise PySparkException(f"the receiver has not started within {_START_TIMEOUT_S:g} s")

    def trouble(self) -> str | None:
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

    def _finish(self, _time: Any, batch: "RDD[bytes]") -> None:
        """Run a batch and report what it did; called by Spark."""
        try:
            if batch.getNumPartitions():
                self._done(merged(batch.mapPartitions(self._work).collect(), time.monotonic()))
        except (PySparkException, Py4JError) as error:
            self._failure = first_line(error)
            raise


class _Watch(StreamingListener):
    """A listener for the start of the receiver and its errors."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.error = threading.Event(), None

    def onReceiverStarted(self, receiverStarted: Any) -> None:  # noqa: N802, N803, ARG002  Spark's name
        self.started.set()

    def onReceiverError(self, receiverError: Any) -> None:  # noqa: N802, N803  Spark's name
        self.error = receiverError.receiverInfo().lastErrorMessage()


def _lines(context: StreamingContext, read: Read) -> "DStream[bytes]":
    """Return `socketTextStream` whose lines stay bytes in Python."""
    host, port = Address.parse(read.address)
    java = context._jssc  # noqa: SLF001  PySpark offers the stream as text only
    level = context.sparkContext._getJavaStorageLevel(_LEVELS[read.storage])  # noqa: SLF001
    return DStream(java.socketTextStream(host, port, level), context, _AS_BYTES)


_AS_BYTES = UTF8Deserializer(use_unicode=False)  # type: ignore[no-untyped-call]
_LEVELS = {
    "MEMORY_ONLY": StorageLevel(False, True, False, True),  # noqa: FBT003  Java's own: PySpark's stores serialized
    "MEMORY_AND_DISK_2": StorageLevel.MEMORY_AND_DISK_2,
}


def _warm(spark: SparkContext, read: Read, cores: int) -> None:
    """Start every Python worker, with what it imports, before the first message."""
    spark.parallelize([b""] * cores, cores).mapPartitions(on_lines(read.work)).collect()
