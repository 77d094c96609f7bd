"""Kafka's brokers send and write some bytes more than once."""

from bench.analysis.bounds import Copies
from bench.config.site import Site
from producers.kafka.plugin import copies, kafka_copies
from producers.kafka.site import KafkaSite
from producers.kafka.source import KafkaSettings


def test_kafka_sends_to_followers_and_consumers() -> None:
    """Three copies, two readers, three brokers: three times in, two to followers and two out; three disks."""
    assert kafka_copies(3, consumers=2, brokers=3) == Copies(network=4 / 3, disk=1)


def test_a_card_carries_both_directions_at_once() -> None:
    """Bytes that come in and go out once fill a card no more than bytes that only come in."""
    assert kafka_copies(1) == Copies(network=1, disk=1)


def test_brokers_of_a_site_share_the_copies() -> None:
    """An embedded Kafka has one broker."""
    site = Site(sections={"kafka": KafkaSite("a:1,b:1,c:1")})
    assert copies(KafkaSettings(replication=3), site) == kafka_copies(3, brokers=3)
    assert copies(KafkaSettings(), Site()) == kafka_copies(1)


def test_brokers_that_choose_the_replicas_name_them_in_the_site_file() -> None:
    """Otherwise the bound of their disks would be three times too high; a scenario's own number comes first."""
    site = Site(sections={"kafka": KafkaSite("a:1,b:1,c:1", replication=3)})
    assert copies(KafkaSettings(), site) == kafka_copies(3, brokers=3)
    assert copies(KafkaSettings(replication=2), site) == kafka_copies(2, brokers=3)
