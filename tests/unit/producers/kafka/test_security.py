"""Clients of a secured Kafka have a name and a password, which no endpoint carries."""

from pathlib import Path

import pytest

from bench.errors import SiteError
from producers.kafka import security
from producers.kafka.site import KafkaSecurity


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
