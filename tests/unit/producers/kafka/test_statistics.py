"""Statistics of librdkafka become metrics with units."""

import json

from producers.kafka.statistics import ClientStatistics

BROKER = {"rtt": {"avg": 2000, "cnt": 5}, "int_latency": {"avg": 500, "cnt": 5}, "throttle": {"avg": 3, "cnt": 1}}
SILENT = {"rtt": {"avg": 9_000_000, "cnt": 0}}


def told(**fields):
    """Return the values of a client that has said this."""
    statistics = ClientStatistics()
    statistics.configuration()["stats_cb"](json.dumps({"brokers": {"a": BROKER, "b": SILENT}, **fields}))
    return statistics.values()


def test_nothing_is_known_before_the_client_has_said_something():
    """It does after a second."""
    assert ClientStatistics().values() == {}


def test_a_producer_says_how_long_messages_wait():
    """In seconds; a broker that was not asked says nothing."""
    assert told(type="producer", msg_cnt=7) == {
        "round_trip_s": 0.002, "waiting_messages": 7, "queued_s": 0.0005, "throttled_s": 0.003,
    }  # fmt: skip


def test_what_is_not_known_is_left_out():
    """A zero would be a fast broker."""
    assert told(type="consumer", brokers={"b": SILENT}) == {"fetched_messages": 0}
    assert told(type="producer", brokers={"b": SILENT}) == {"waiting_messages": 0}


def test_a_consumer_says_how_many_messages_it_has_fetched_ahead():
    """Of all partitions. Its lag is not known to it: it belongs to no group."""
    parts = {"0": {"fetchq_cnt": 2}, "1": {"fetchq_cnt": 1}}
    assert told(type="consumer", topics={"t": {"partitions": parts}}) == {
        "round_trip_s": 0.002, "fetched_messages": 3,
    }  # fmt: skip
