"""Structured Streaming: a query that reads Kafka, Pulsar, a folder or a socket, and reports on its micro-batches."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import reduce
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.functions import vectorized_udf  # type: ignore[attr-defined]  # it has no types
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType, StructType
from pyspark.util import PythonEvalType

from bench.config.address import Address
from bench.workload.delivery_counts import ProcessingReport
from frameworks.spark.batch_clock import BatchClock
from frameworks.spark.commands import Read, first_line
from frameworks.spark.driver_trace import add_driver, parse_phases, start_trace
from frameworks.spark.tasks import merge_rows, on_arrow

_FILE = "path string, modificationTime timestamp, length long, content binary"
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_START_TIMEOUT_S = 30.0
"""Seconds that a query has for its first look at the source."""


class Query:
    """One query; it reads from its construction until `stop`."""

    def __init__(self, spark: SparkSession, read: Read, done: Callable[[list[ProcessingReport]], None]) -> None:
        session = spark.newSession()  # its SQL settings are its own; the context and its workers are shared
        for key, value in read.conf.items():
            session.conf.set(key, value)
        _warm(session, read)
        self._done, self._failure, self._stopping = done, "", threading.Event()
        self._clock, self._triggers = BatchClock(), _Triggers(traced=read.work.traced)
        self._trace = start_trace(spark.sparkContext.master) if read.work.traced else None
        tallies = _mapped(_READERS[read.reader](session, read), on_arrow(read.work))
        writer = tallies.writeStream.foreachBatch(self._finish).option("checkpointLocation", read.checkpoint)
        self._query = writer.trigger(processingTime=f"{round(read.interval * 1000)} milliseconds").start()
        self._triggers.follow(self._query)
        self._wait_started()

    def failure_reason(self) -> str | None:
        """Return why it ended by itself; None while it goes on."""
        error = self._query.exception()
        if error is not None:
            return f"the query failed: {self._failure or first_line(error)}"
        return None if self._query.isActive else "the query ended"

    def stop(self) -> None:
        """End at once, in the middle of a batch too."""
        self._stopping.set()
        self._query.stop()

    def _finish(self, batch: DataFrame, number: int) -> None:
        """Run a micro-batch and report what it did; called by Spark."""
        called = time.monotonic()
        try:
            rows = [row.reports for row in batch.collect()]
            at = time.monotonic()
            times = self._triggers.times(number)
            began = self._clock.begin(*times)
            self._clock.end(at)
        except (PySparkException, Py4JError) as error:
            if self._stopping.is_set():
                return  # raised, Spark would search its long text with a pattern that overflows the stack
            self._failure = first_line(error)
            raise
        reports = merge_rows(rows, began, at)
        if self._trace is not None:
            reports = add_driver(reports, self._trace, (called, at), times, self._triggers.phases)
        self._done(reports)

    def _wait_started(self) -> None:
        """Return when the source has been looked at once: whatever comes from now on belongs to a later batch."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while self.failure_reason() is None and str(self._query.status["message"]).startswith("Initializing"):
            if time.monotonic() > deadline:
                raise PySparkException(f"the query has not begun within {_START_TIMEOUT_S:g} s")
            time.sleep(0.02)


class _Triggers:
    """The triggers of one query: each plans, runs and commits a batch."""

    def __init__(self, *, traced: bool) -> None:
        self._query: SimpleQueue[StreamingQuery] = SimpleQueue()
        self._execution: JavaObject | None = None
        self._batch, self._started_ms, self._traced = -1, 0, traced
        self.phases: dict[str, int] = {}
        """milliseconds of the phases of the batch before the last one asked of; only if it is traced"""

    def follow(self, query: StreamingQuery) -> None:
        """Ask this query from now on; its first batch may already run."""
        self._query.put(query)

    def times(self, number: int) -> tuple[int, int | None]:
        """Return when the trigger of a batch under way began and when the one of the batch before had ended.

        PySpark has the begin only in the progress of the batch, which comes after its commit: here Spark's own object
        is asked for it.

        Args:
            number: Spark's number of the batch.

        Returns:
            Milliseconds since 1970; None for an end of which Spark has no progress.
        """
        if self._execution is None:
            query: Any = self._query.get(timeout=_START_TIMEOUT_S)
            self._execution = query._jsq.streamingQuery()  # noqa: SLF001  nothing else has the begin in time
        before, before_started_ms = self._batch, self._started_ms
        started_ms = int(self._execution.getLatestExecutionContext().currentTriggerStartTimestamp())
        self._batch, self._started_ms, self.phases = number, started_ms, {}
        progress = self._execution.lastProgress()
        if progress is None or before < 0 or progress.batchId() != before:
            return started_ms, None
        if self._traced:
            self.phases = parse_phases(progress.durationMs().toString())
        return started_ms, before_started_ms + int(progress.durationMs()["triggerExecution"])


def _warm(session: SparkSession, read: Read) -> None:
    """Start every Python worker, with what it imports, before the first message."""
    tasks = session.sparkContext.defaultParallelism
    _mapped(session.range(0, tasks, 1, tasks).selectExpr("cast('x' as binary) as value"), on_arrow(read.work)).collect()


def _mapped(frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> DataFrame:
    """Return `frame.mapInArrow`, which in PySpark 4.2 refuses to work without pandas although it does not use it."""
    udf = vectorized_udf(function, "reports string", PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = udf(*(frame[name] for name in frame.columns))
    return type(frame)(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)  # noqa: FBT003, SLF001


def _kafka(session: SparkSession, read: Read) -> DataFrame:
    """Return the topic from its present ends.

    They are read here: "latest" would mean the ends when the first batch is planned.
    """
    options = {
        "kafka.bootstrap.servers": read.address,
        "subscribe": read.topic,
        "startingOffsets": json.dumps({read.topic: _ends(session, read)}),
        **read.options,
    }
    return session.readStream.format("kafka").options(**options).load().select("value")


def _pulsar(session: SparkSession, read: Read) -> DataFrame:
    """Return the topic from its present ends, which are read here for the same reason.

    The query's subscription holds them.
    """
    from pulsar import PulsarException  # here: no other source needs Pulsar's client

    from frameworks.spark.pulsarsource import PulsarDataSource

    session.dataSource.register(PulsarDataSource)
    options = {"serviceUrl": read.address, "topic": read.topic, **read.options}
    try:
        reader = PulsarDataSource(options).streamReader(StructType().add("value", BinaryType()))
        try:
            ends = json.dumps(reader.initialOffset())
        finally:
            reader.stop()
    except (ValueError, PulsarException) as problem:
        raise PySparkException(f"the topic {read.topic} cannot be read: {problem}") from problem
    return session.readStream.format("pulsar").options(**{"startingPositions": ends, **options}).load()


def _memory(session: SparkSession, read: Read) -> DataFrame:
    """Return messages that the readers make themselves."""
    from frameworks.spark.benchmark.memorysource import MemoryDataSource  # here: it is for the benchmark alone

    session.dataSource.register(MemoryDataSource)
    return session.readStream.format("memory").options(**read.options).load()


def _files(session: SparkSession, read: Read) -> DataFrame:
    stream = session.readStream.format("binaryFile").schema(_FILE).options(**read.options)
    return stream.load(read.address).select("content")


def _socket(session: SparkSession, read: Read) -> DataFrame:
    addresses = map(Address.parse, read.addresses)
    streams = [session.readStream.format("socket").options(host=host, port=port) for host, port in addresses]
    lines = reduce(DataFrame.union, (stream.options(**read.options).load() for stream in streams))
    return lines.selectExpr("cast(value as binary) as value")


_READERS: dict[str, Callable[[SparkSession, Read], DataFrame]] = {
    "kafka": _kafka,
    "pulsar": _pulsar,
    "memory": _memory,
    "files": _files,
    "socket": _socket,
}


def _ends(session: SparkSession, read: Read) -> dict[str, int]:
    """Return the offset after the last message of each partition, asked with the connector's own client."""
    client = {key.removeprefix("kafka."): value for key, value in read.options.items() if key.startswith("kafka.")}
    jvm = session.sparkContext._jvm  # noqa: SLF001  PySpark's only way to a Java class
    assert jvm is not None
    consumer: JavaObject = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        {**client, "bootstrap.servers": read.address, "key.deserializer": _BYTES, "value.deserializer": _BYTES}
    )
    try:
        parts = [
            jvm.org.apache.kafka.common.TopicPartition(read.topic, part.partition())
            for part in consumer.partitionsFor(read.topic)
        ]
        return {str(part.partition()): int(end) for part, end in consumer.endOffsets(parts).items()}
    finally:
        consumer.close()
