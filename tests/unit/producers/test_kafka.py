"""Kafka's adapter: copies of each byte, the security of its clients."""

from pathlib import Path

import pytest

from bench.analysis.bounds import Copies
from bench.config.site import Site
from bench.errors import SiteError
from producers.kafka import security
from producers.kafka.plugin import copies, kafka_copies
from producers.kafka.site import KafkaSecurity, KafkaSite
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


def test_a_secured_kafka_lets_clients_in_by_their_own_names(tmp_path: Path) -> None:
    """The libraries librdkafka and kafka-python get the same from the paths that an endpoint carries."""
    (tmp_path / "password").write_text('a "quoted" one\n')
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    client = security.client_settings(KafkaSecurity("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))
    assert security.for_librdkafka(client)["sasl.password"] == 'a "quoted" one'
    assert security.for_kafka_python(client)["sasl_plain_password"] == 'a "quoted" one'
    assert security.client_settings(None) == security.for_librdkafka({"acks": 1}) == {}


def test_an_endpoint_carries_no_secret(tmp_path: Path) -> None:
    """It goes to load generators on other hosts, over a connection that is not encrypted."""
    (tmp_path / "password").write_text("THE-SITE-PASSWORD\n")
    (tmp_path / "ca.crt").write_text("CERTIFICATE\n")
    client = security.client_settings(KafkaSecurity("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))
    assert "THE-SITE-PASSWORD" not in str(client)


def test_a_password_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The line names the file."""
    with pytest.raises(SiteError, match=r"cannot be read"):
        security.client_settings(KafkaSecurity("bench", str(tmp_path / "password"), str(tmp_path / "ca.crt")))
