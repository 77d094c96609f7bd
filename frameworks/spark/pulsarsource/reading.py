"""A task's part of a micro-batch: the messages of one partition after a position, up to another, as Arrow batches.

Runs in Spark's Python workers. A worker keeps its readers, so that the next batch of a partition goes on where the last
one ended; a reader that stands elsewhere (another worker had the batch between, or a task is repeated) is opened again
at the start.
"""

import contextlib
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pulsar
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructType, TimestampType

from frameworks.spark.pulsarsource.options import PulsarSourceOptions, make_client
from frameworks.spark.pulsarsource.position import Position

_WAIT_MS = 200
"""After which, where the end does not name its last message, Pulsar is asked whether there is more."""
_IDLE_TIMEOUT_S = 30.0


@dataclass
class Range(InputPartition):
    """The messages of a partition (a topic of its own to Pulsar) after `start`, up to `end`; positions as texts."""

    part: str
    start: str
    end: str


Column = tuple[DataType, pa.DataType, Callable[[pulsar.Message], Any]]
COLUMNS: dict[str, Column] = {
    "value": (BinaryType(), pa.binary(), lambda message: message.data()),
    "key": (StringType(), pa.string(), lambda message: message.partition_key() or None),
    "topic": (StringType(), pa.string(), lambda message: message.topic_name()),
    "position": (StringType(), pa.string(), lambda message: str(Position.of(message.message_id()))),
    "publishTime": (TimestampType(), pa.timestamp("us", "UTC"), lambda message: message.publish_timestamp() * 1000),
    "eventTime": (TimestampType(), pa.timestamp("us", "UTC"), lambda message: message.event_timestamp() * 1000 or None),
    "redeliveries": (IntegerType(), pa.int32(), lambda message: message.redelivery_count()),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of the columns that a query asks for. Raises ValueError where one does not exist."""
    for field in schema.fields:
        if field.name not in COLUMNS or COLUMNS[field.name][0] != field.dataType:
            known = ", ".join(f"{name} {kind.simpleString()}" for name, (kind, _, _) in COLUMNS.items())
            raise ValueError(
                f"the format pulsar has no column {field.name} {field.dataType.simpleString()}; there are {known}"
            )
    return pa.schema([pa.field(field.name, COLUMNS[field.name][1], field.nullable) for field in schema.fields])


def batches(options: PulsarSourceOptions, span: Range, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield everything of the span, once, in bounded batches.

    Raises RuntimeError where a message does not come in time.
    """
    end = Position.parse(span.end)
    reader = _take_reader(options, span.part, Position.parse(span.start))
    with contextlib.ExitStack() as undo:  # also when a task is given up: nobody knows where its reader stands
        undo.callback(reader.pulsar_reader.close)
        while (batch := reader.next_batch(options, end, schema)) is not None:
            yield batch
        if not reader.held_back:
            reader.used = time.monotonic()
            _readers[options.serviceUrl, span.part] = reader
            undo.pop_all()


def binaries(values: Sequence[bytes]) -> pa.Array:
    """Return values as one Arrow array: copied once, and a single one not at all."""
    bounds = array("i", accumulate(map(len, values), initial=0))
    data = values[0] if len(values) == 1 else b"".join(values)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(bounds), pa.py_buffer(data)])


def _array_of(column: list[Any], kind: pa.DataType) -> pa.Array:
    return binaries(column) if kind == pa.binary() else pa.array(column, kind)


class PartitionReader:
    """An open reader of one partition, and the position of the last message that it gave."""

    def __init__(self, reader: pulsar.Reader, position: Position) -> None:
        self.pulsar_reader, self.position = reader, position
        self.held_back = False
        """whether it has given a message that lies behind what was asked for"""
        self.used = time.monotonic()

    def next_batch(self, options: PulsarSourceOptions, end: Position, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return the next messages up to `end`; None when there are none."""
        getters = [COLUMNS[name][2] for name in schema.names]
        columns: list[list[Any]] = [[] for _ in getters]
        size = rows = 0
        while rows < options.maxBatchRows and size < options.maxBatchBytes:
            message = self._next(end, options.readTimeout)
            if message is None:
                break
            for column, getter in zip(columns, getters, strict=True):
                column.append(getter(message))
            size += message._message.length()  # noqa: SLF001  the length of a message that need not be copied for it
            rows += 1
        if not rows:
            return None
        arrays = [_array_of(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _next(self, end: Position, seconds: float) -> pulsar.Message | None:
        """Return the next message up to `end`; None when that was the last one."""
        if self.held_back or self.position.ends(end):
            return None
        message = self._waited(end, seconds)
        if message is None:
            return None
        position = Position.of(message.message_id())
        if position.beyond(end):
            if not self._has_reached(end):
                raise RuntimeError(f"{self._gone(end)}; the next one has the position {position}")
            self.held_back = True
            return None
        self.position = position
        return message

    def _waited(self, end: Position, seconds: float) -> pulsar.Message | None:
        """Return the next message; None where `end` does not name its last one and no more are there."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.pulsar_reader.read_next(_WAIT_MS)
            except pulsar.Timeout:
                if end.whole_entry and self._has_reached(end) and not self.pulsar_reader.has_message_available():
                    return None
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{self._gone(end)}; no other one came within {seconds:g} s") from None

    def _has_reached(self, end: Position) -> bool:
        """Return whether something of the last entry was read.

        An end before the first entry of a ledger names none.
        """
        return end.entry < 0 or self.position[:2] == end[:2]

    def _gone(self, end: Position) -> str:
        return (
            f"after {self.position} the message of {self.pulsar_reader.topic()} with which the batch ends,"
            f" {end}, is not there: was it"
            " deleted (by a time to live, or without the subscription that keeps it), or sent in pieces (chunks)?"
        )


_clients: dict[str, pulsar.Client] = {}
_readers: dict[tuple[str, str], PartitionReader] = {}
"""Of this worker process: a client of each cluster, and a reader of each partition that it has read to the end of a
batch."""


def _take_reader(options: PulsarSourceOptions, part: str, start: Position) -> PartitionReader:
    """Return the worker's reader of the partition if it is at `start`, or a new one there."""
    known = _readers.pop((options.serviceUrl, part), None)
    _close_idle()
    if known is not None and known.position == start and known.pulsar_reader.is_connected():
        return known
    if known is not None:
        known.pulsar_reader.close()
    if options.serviceUrl not in _clients:
        _clients[options.serviceUrl] = make_client(options)
    client = _clients[options.serviceUrl]
    return PartitionReader(
        client.create_reader(part, start.message_id(), receiver_queue_size=options.receiverQueueSize), start
    )


def _close_idle() -> None:
    """Close readers that were not used lately: their query may have ended, and their topic be gone."""
    for place, reader in list(_readers.items()):
        if time.monotonic() > reader.used + _IDLE_TIMEOUT_S:
            del _readers[place]
            reader.pulsar_reader.close()
