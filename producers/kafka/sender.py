"""Kafka's sender: writes the partitions in turn and counts what Kafka confirms."""

from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka import KafkaException
from kafka.errors import KafkaError

from bench.errors import PluginError
from bench.plugins.protocols import Endpoint
from bench.workload.batch_writer import Filler
from producers.kafka.client import client_of


class KafkaSender:
    """Writer of message i to partition i modulo their number, or to the partition of its key.

    Confirmed is what was taken, minus what waits, minus what failed: exact once nothing waits, and never too many
    before.
    """

    gathers_from = 32_768

    def __init__(self, endpoint: Endpoint) -> None:
        self._taken = self._confirmed = 0
        try:
            self._client = client_of(endpoint)
        except (KafkaError, KafkaException) as problem:
            raise PluginError("kafka", "open", f"no connection to {endpoint.address}: {problem}") from problem
        self._closed = False
        self._parts, self._most = endpoint.parts, int(endpoint.client["waiting"])

    def send(self, messages: Sequence[bytes]) -> int:
        """Offer messages; return how many were taken."""
        offered = messages[: self._free_places()]
        for part, turns in self._turns(len(offered)):
            self._client.write(offered[turns], part)
        self._taken += len(offered)
        return len(offered)

    def send_pieces(self, heads: Sequence[bytes], fillers: Sequence[Filler]) -> int:
        """Offer messages in two pieces, header and filler; return how many were taken."""
        count = min(len(heads), self._free_places())
        for part, turns in self._turns(count):
            self._client.write_pieces(heads[:count][turns], fillers[:count][turns], part)
        self._taken += count
        return count

    def send_keyed(self, messages: Sequence[bytes], keys: Sequence[bytes]) -> int:
        """Offer messages with a key each; return how many were taken."""
        count = min(len(messages), self._free_places())
        if count:
            self._client.write_keyed(messages[:count], keys[:count])
        self._taken += count
        return count

    def _free_places(self) -> int:
        return max(0, self._most - self._client.waiting())

    def _turns(self, count: int) -> Iterator[tuple[int, slice]]:
        """Yield which of the next messages go to which partition; only partitions that get any."""
        for part in range(self._parts):
            first = (part - self._taken) % self._parts
            if first < count:
                yield part, slice(first, None, self._parts)

    def confirmed(self) -> tuple[int, int]:
        """Return (confirmed, failed) so far."""
        waiting, failed = self._client.waiting(), self._client.failed()
        self._confirmed = max(self._confirmed, self._taken - waiting - failed)
        return self._confirmed, failed

    def statistics(self) -> Mapping[str, float]:
        """Return what the client says of itself."""
        return self._client.statistics()

    def close(self) -> None:
        """Disconnect; what is not confirmed is given up."""
        if not self._closed:
            self._closed = True
            self._client.close()
