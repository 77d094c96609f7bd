"""A data source without a broker: Python readers make messages, to see what Spark's Python stage takes by itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from bench.model.message_codec import MessageWriter
from frameworks.spark.pulsarsource.reading import binaries
from frameworks.spark.tasks import messages_at_once

_SCHEMA = pa.schema([pa.field("value", pa.binary())])


@dataclass
class MessageRange(InputPartition):
    """The messages `first` to `last` - 1 of one producer."""

    producer: int
    first: int
    last: int


class MemoryDataSource(DataSource):
    """`format("memory")`: so many messages from each of so many parts, numbered from 0 in each, in one micro-batch."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "memory"

    def schema(self) -> str:
        """Return the schema: one binary column."""
        return "value binary"

    def streamReader(self, schema: StructType) -> "MemoryStreamReader":  # noqa: ARG002, N802  Spark's name
        """Return the reader."""
        return MemoryStreamReader(self.options)


class MemoryStreamReader(DataSourceStreamReader):
    """A reader whose offset is the number of messages of each part that were read."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._parts, self._count = int(options["parts"]), int(options["count"])
        self._size, self._entropy = int(options["size"]), float(options["entropy"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  Spark's name
        """Return the first offset."""
        return {"read": 0}

    def latestOffset(self, start: object = None, limit: object = None) -> dict[str, int]:  # noqa: N802, ARG002
        """Return the newest offset."""
        return {"read": self._count}

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> Sequence[MessageRange]:
        """Return a task for each core."""
        return [
            MessageRange(part, start["read"], end["read"]) for part in range(self._parts) if end["read"] > start["read"]
        ]

    def read(self, partition: MessageRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # ours are MessageRanges
        """Yield messages; called in an executor's worker."""
        most = messages_at_once(self._size)
        writer = MessageWriter(run=1, producer=partition.producer, size=self._size, cost=0.0, entropy=self._entropy)
        for first in range(partition.first, partition.last, most):
            messages = writer.write(first, np.zeros(min(most, partition.last - first)), 0.0)
            yield pa.RecordBatch.from_arrays([binaries(messages)], schema=_SCHEMA)
