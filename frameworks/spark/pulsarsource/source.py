"""The data source: what it is called, its columns, its options, and the offsets and partitions of each micro-batch.

Runs in a process that Spark's driver keeps for each query. An offset is the position of the last message that was read,
of every partition. A durable subscription keeps what no finished batch has read yet from being deleted; `commit` moves
it on.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence

import pulsar
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from frameworks.spark.pulsarsource.options import PulsarSourceOptions, make_client
from frameworks.spark.pulsarsource.position import EARLIEST, Position
from frameworks.spark.pulsarsource.reading import Range, arrow_schema, batches

_BUSY_TIMEOUT_S = 30.0
"""In which Pulsar must notice that a query that was killed is gone, so that its successor can have the subscription."""


class PulsarDataSource(DataSource):
    """The format of `spark.readStream.format("pulsar")`.

    A topic's messages, in the order of each partition (see README.md).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "pulsar"

    def schema(self) -> str:
        """Return the message alone.

        `.schema("value binary, key string")` asks for more of the columns that there are.
        """
        return "value binary"

    def streamReader(self, schema: StructType) -> "PulsarStreamReader":  # noqa: N802  Spark's name
        """Return a reader of the columns."""
        return PulsarStreamReader(schema, self.options)


class PulsarStreamReader(DataSourceStreamReader):
    """One query's view of a topic."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._options, self._schema = PulsarSourceOptions.of(options), arrow_schema(schema)
        self._client: pulsar.Client | None = None
        self._held: dict[str, pulsar.Consumer] = {}

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  Spark's name
        """Return where a query without a checkpoint begins."""
        starting, parts = self._options.startingPositions, self._consumers()
        if starting == "earliest":
            return dict.fromkeys(parts, str(EARLIEST))
        if starting == "latest":
            return self._ends()
        given = {part: Position.parse(text) for part, text in json.loads(starting).items()}
        if given.keys() != parts.keys():
            raise ValueError(f"startingPositions must name {', '.join(parts)}, not {', '.join(given)}")
        return {part: str(position) for part, position in given.items()}

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: object = None) -> dict[str, str]:  # noqa: N802, ARG002
        """Return the last message of each partition; `start` where nothing has come since."""
        before = {part: _parsed(start, part) for part in self._consumers()}
        return {part: str(max(before[part], Position.parse(end))) for part, end in self._ends().items()}

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[Range]:
        """Return a task for each partition of the topic in which something has come."""
        return [
            Range(part, str(_parsed(start, part)), end[part])
            for part in end
            if _parsed(end, part) > _parsed(start, part)
        ]

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # ours are Ranges
        """Yield a span's messages; called in an executor's worker, on a copy of this object."""
        return batches(self._options, partition, self._schema)

    def commit(self, end: Mapping[str, str]) -> None:
        """Let Pulsar delete what finished batches have read."""
        for part, consumer in self._consumers().items():
            position = _parsed(end, part)
            if position.entry >= 0:
                consumer.acknowledge_cumulative(position.message_id())

    def stop(self) -> None:
        """Disconnect."""
        client, self._client, self._held = self._client, None, {}
        if client is not None:
            client.shutdown()  # at once: a close would wait for a Pulsar that may be gone

    def _ends(self) -> dict[str, str]:
        """Return the last message of each partition: one small request for each."""
        return {part: str(Position.of(consumer.get_last_message_id())) for part, consumer in self._consumers().items()}

    def _consumers(self) -> Mapping[str, pulsar.Consumer]:
        """Return a consumer of each partition that fetches nothing.

        It holds the subscription, and knows where it ends.
        """
        if self._client is None:
            self._client = make_client(self._options)
            deadline = time.monotonic() + _BUSY_TIMEOUT_S
            parts = self._client.get_topic_partitions(self._options.topic)
            self._held = {part: self._subscribed(self._client, part, deadline) for part in sorted(parts, key=_number)}
        return self._held

    def _subscribed(self, client: pulsar.Client, part: str, deadline: float) -> pulsar.Consumer:
        latest = self._options.startingPositions == "latest"
        first = pulsar.InitialPosition.Latest if latest else pulsar.InitialPosition.Earliest
        while True:
            try:
                return client.subscribe(part, self._options.subscription, receiver_queue_size=0, initial_position=first)
            except pulsar.ConsumerBusy:
                if time.monotonic() > deadline:
                    why = (
                        f"the subscription {self._options.subscription!r} of {part} is in use; give"
                        " each query one of its own"
                    )
                    raise ValueError(why) from None
                time.sleep(0.2)


def _parsed(offset: Mapping[str, str] | None, part: str) -> Position:
    """Return a partition's position in an offset; one that the offset does not know yet begins at its beginning."""
    text = (offset or {}).get(part)
    return EARLIEST if text is None else Position.parse(text)


def _number(part: str) -> tuple[int, str]:
    """Return the number of a partition, by which partitions are ordered."""
    _, found, number = part.rpartition("-partition-")
    return (int(number) if found and number.isdigit() else -1, part)
