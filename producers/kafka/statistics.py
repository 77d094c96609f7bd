"""The statistics that librdkafka keeps of a client: the newest ones, by metric."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

INTERVAL_MS = 1000


class _Average(Struct, frozen=True):
    """An average of the last interval: microseconds, but for `throttle`, which has milliseconds."""

    avg: float = 0.0
    cnt: int = 0


class _Broker(Struct, frozen=True):
    rtt: _Average = _Average()
    int_latency: _Average = _Average()
    throttle: _Average = _Average()


class _Partition(Struct, frozen=True):
    fetchq_cnt: int = 0


class _Topic(Struct, frozen=True):
    partitions: dict[str, _Partition] = {}


class _Statistics(Struct, frozen=True):
    """The part that is used; see STATISTICS.md of librdkafka."""

    type: str
    msg_cnt: int = 0
    brokers: dict[str, _Broker] = {}
    topics: dict[str, _Topic] = {}


class ClientStatistics:
    """The newest statistics of one client, which gives them as JSON while it is polled."""

    def __init__(self) -> None:
        self._newest: str | None = None

    def configuration(self) -> dict[str, Any]:
        """Return the settings with which a client gives its statistics to this object."""
        return {"statistics.interval.ms": INTERVAL_MS, "stats_cb": self.add}

    def add(self, text: str) -> None:
        """Take in what the client says; it is read only if it is asked for."""
        self._newest = text

    def values(self) -> Mapping[str, float]:
        """Return the newest statistics; empty while there are none.

        Seconds are averages of the last interval, of the slowest broker: from a request to its answer, of a message
        until it is sent, and of the broker's quotas. What the client does not know is left out.
        """
        if self._newest is None:
            return {}
        found = msgspec.json.decode(self._newest, type=_Statistics)
        brokers = found.brokers.values()
        values = _slowest("round_trip_s", (one.rtt for one in brokers), 1e6)
        if found.type == "producer":
            values |= _slowest("queued_s", (one.int_latency for one in brokers), 1e6)
            values |= _slowest("throttled_s", (one.throttle for one in brokers), 1e3)
            return values | {"waiting_messages": found.msg_cnt}
        parts = [part for topic in found.topics.values() for part in topic.partitions.values()]
        return values | {"fetched_messages": sum(part.fetchq_cnt for part in parts)}


def _slowest(name: str, averages: Iterable[_Average], per_second: float) -> dict[str, float]:
    """Return the largest average of brokers in seconds, by its name; nothing if none of them has one."""
    known = [one.avg for one in averages if one.cnt]
    return {name: max(known) / per_second} if known else {}
